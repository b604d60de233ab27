"""Runs the model in eager PyTorch: as a whole, and node by node."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch.export.graph_signature import InputKind

from onnxplain.passes import Prepared
from onnxplain.process import exact_float32, exits_as_errors, gpu_assertions_raised, random_numbers_kept
from onnxplain.registry import qualified_name
from onnxplain.request import Request, constant_of, copied, is_constant
from onnxplain.source import locations
from onnxplain.torch_internals import dispatch_modes, dynamo, loop_gradients, pytree
from onnxplain.torch_internals.fake_tensors import is_fake
from onnxplain.torch_internals.modules import buffers, named_modules
from onnxplain.torch_internals.python_values import is_a


def outputs(program: torch.export.ExportedProgram, request: Request, *, seed: int | None = None) -> list[torch.Tensor]:
    """The outputs for the example inputs, flat, without None and strings. Leaves weights, buffers and random state as they were.

    Args:
        program: The captured program.
        request: The export.
        seed: Where random numbers begin; None for where they are now.
    """
    model = program.module() if isinstance(request.model, torch.export.ExportedProgram) else request.model
    # NOTE: the inputs are copies, since a model may write to them.
    with _restored(model, program), random_numbers_kept(seed):
        return _run(model, *copied(request.args, request.kwargs))


def outputs_of_two_runs(program: torch.export.ExportedProgram, request: Request) -> tuple[list[torch.Tensor], list[torch.Tensor] | None]:
    """As `outputs`, and those of a second run, for which the first one has prepared the model; None if that one fails."""
    model = program.module() if isinstance(request.model, torch.export.ExportedProgram) else request.model
    with _restored(model, program):
        with random_numbers_kept():
            first = _run(model, *copied(request.args, request.kwargs))
        try:
            with random_numbers_kept():
                return first, _run(model, *copied(request.args, request.kwargs))
        except Exception:  # noqa: BLE001  the user's model runs here, and may raise anything
            return first, None


def outputs_or_none(program: torch.export.ExportedProgram, request: Request) -> list[torch.Tensor] | None:
    """As `outputs`; None if the model refuses the inputs."""
    try:
        return outputs(program, request)
    except Exception:  # noqa: BLE001  the user's model runs here, and may raise anything
        return None


def takes(program: torch.export.ExportedProgram, request: Request) -> bool:
    """Whether the program takes the inputs. Leaves weights, buffers and random state as they were."""
    args, kwargs = copied(request.args, request.kwargs)
    model = program.module()
    try:
        with torch.no_grad(), _restored(model, program), random_numbers_kept(), dynamo.uncompiled():
            model(*args, **kwargs)
    except Exception:  # noqa: BLE001  operators refuse sizes with any exception
        return False
    return True


def runs_of_program(program: torch.export.ExportedProgram, request: Request, count: int) -> list[list[torch.Tensor]]:
    """The outputs of the captured program, which keeps no state, in several runs; fewer if it refuses the inputs."""
    model, found = program.module(), list[list[torch.Tensor]]()
    # NOTE: operators refuse sizes with any exception.
    with contextlib.suppress(Exception), _restored(model, program):
        for _ in range(count):
            with random_numbers_kept():
                found.append(_run(model, *copied(request.args, request.kwargs)))
    return found


def outputs_in_double(program: torch.export.ExportedProgram, request: Request) -> list[torch.Tensor] | None:
    """The outputs of a copy of the model with float64 in place of all floating dtypes; None if that does not run."""
    try:
        model = program.module() if isinstance(request.model, torch.export.ExportedProgram) else copy.deepcopy(request.model)
        args, kwargs = pytree.tree_map(_in_double, copied(request.args, request.kwargs))
        with _restored(model, program), random_numbers_kept():
            return _run(model.double() if isinstance(model, torch.nn.Module) else model, args, kwargs)
    except Exception:  # noqa: BLE001  the user's model runs here, with dtypes that it may not have been written for
        return None


def outputs_with_other_signs(program: torch.export.ExportedProgram, request: Request) -> list[torch.Tensor]:
    """The outputs if some singular vectors and eigenvectors were their opposites, which are as right."""

    def flip(operator: Any, args: tuple[Any, ...], result: Any) -> None:
        del args
        if qualified_name(operator) == "aten::_linalg_eigh":
            result[1].mul_(_signs(result[1].shape[-1], result[1].device))
        elif qualified_name(operator) == "aten::_linalg_svd":
            result[0].mul_(_signs(result[0].shape[-1], result[0].device))
            result[2].mul_(_signs(result[2].shape[-2], result[2].device)[:, None])

    with torch.no_grad(), dispatch_modes.each_call(flip):
        return outputs(program, request)


def _signs(count: int, device: torch.device) -> torch.Tensor:
    # NOTE: unlike signs, since products of two vectors do not change with the signs of both.
    return torch.where(torch.arange(count, device=device) % 3 == 1, 1, -1)


def _in_double(value: Any) -> Any:
    return value.double() if is_a(value, torch.Tensor) and value.is_floating_point() else value


def _run(model: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[torch.Tensor]:
    # NOTE: the grad mode is that of the capture: torch's fast paths for inference, such as that of nn.TransformerEncoder, give other
    # numbers where the input is padded.
    with exits_as_errors(locations.is_users), loop_gradients.left_out(), exact_float32(), gpu_assertions_raised(), dynamo.uncompiled():
        results = model(*args, **kwargs)
    leaves = pytree.tree_leaves(results)
    # NOTE: copies, since an output may be a buffer, which is put back.
    return [leaf.clone() if is_a(leaf, torch.Tensor) else torch.tensor(leaf) for leaf in leaves if not (leaf is None or is_a(leaf, str))]


def _can_be_compared(buffer: torch.Tensor) -> bool:
    return buffer.layout is torch.strided and not is_fake(buffer)


def _written_weights(model: torch.nn.Module, program: torch.export.ExportedProgram) -> Iterator[torch.Tensor]:
    """The parameters that the program writes."""
    # NOTE: they are told by name because torch 2.11 to 2.15 do not all have this kind. Copies of all weights would double the memory.
    names = {spec.target for spec in program.graph_signature.output_specs if spec.kind.name == "PARAMETER_MUTATION"}
    yield from (weight for name, weight in model.named_parameters() if name in names)


@contextlib.contextmanager
def _restored(model: Any, program: torch.export.ExportedProgram) -> Iterator[None]:
    """Puts back what a run writes to weights, buffers and attributes of modules, and to the lists, dicts and sets among these."""
    owners = [module for _, module in named_modules(model)] if isinstance(model, torch.nn.Module) else []
    before = [(buffers(owner), dict(buffers(owner))) for owner in owners]
    others = [value for owner in owners for value in vars(owner).values() if type(value) is torch.Tensor]
    written = _written_weights(model, program) if isinstance(model, torch.nn.Module) else ()
    kept = [*written, *others, *(each for _, registered in before for each in registered.values() if each is not None)]
    copies = [(each, each.detach().clone()) for each in kept if _can_be_compared(each)]
    attributes = [vars(owner) for owner in owners]
    held = [value for names in attributes for value in names.values() if type(value) in (list, dict, set)]
    contents = [(value, value.copy()) for value in (*attributes, *held)]
    try:
        yield
    finally:
        for value, content in contents:
            if _parts(value) != _parts(content):
                value.clear()
                value.extend(content) if isinstance(value, list) else value.update(content)
        for now, registered in before:
            # NOTE: a TorchScript module offers a view of its buffers, whose number is fixed.
            if isinstance(now, dict):
                now.clear()
                now.update(registered)
        with torch.no_grad():
            for each, copied in copies:
                if not torch.equal(each, copied):
                    each.copy_(copied)


def _parts(container: Any) -> list[int]:
    return [*map(id, container), *(map(id, container.values()) if isinstance(container, dict) else ())]


def flat_arguments(prepared: Prepared, inputs: Sequence[Any]) -> list[Any]:
    """What the placeholders of the graph stand for: weights, constants, and copies of the inputs.

    Args:
        prepared: The program.
        inputs: Its inputs, flat, without constants.
    """
    program = prepared.program
    tensors = {**program.state_dict, **program.constants}
    given = iter(copied(inputs, {})[0])
    flat: list[Any] = []
    for spec in program.graph_signature.input_specs:
        if spec.kind is not InputKind.USER_INPUT:
            flat.append(tensors[spec.target or ""])
        elif is_constant(spec.arg):
            flat.append(constant_of(spec.arg))
        else:
            flat.append(next(given))
    return flat
