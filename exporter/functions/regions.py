"""The nodes of a graph by the module calls that made them, as a tree. The nodes of each call can stand together."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence

import onnx_ir as ir

from onnxplain.source.module_calls import ModuleCall

from .values import reads


@dataclasses.dataclass(eq=False)
class Region:
    """The nodes of a module call.

    Attributes:
        call: The call; None for the whole graph.
        parent: The region around it.
        items: Its nodes, and the regions in it, in an order in which they can run.
        way: The regions from the whole graph's to this one.
        inner: The regions in it, by the keys of their calls.
        edges: The pairs of its items of which the second needs the first.
    """

    call: ModuleCall | None = None
    parent: Region | None = None
    items: list[ir.Node | Region] = dataclasses.field(default_factory=list)
    way: list[Region] = dataclasses.field(init=False)
    inner: dict[str, Region] = dataclasses.field(default_factory=dict)
    edges: dict[tuple[ir.Node | Region, ir.Node | Region], None] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        self.way = [*(self.parent.way if self.parent else ()), self]

    def within(self, call: ModuleCall) -> Region:
        """The region of a call in this one."""
        if call.key not in self.inner:
            self.inner[call.key] = Region(call, self)
            self.items.append(self.inner[call.key])
        return self.inner[call.key]

    def all(self) -> Iterator[Region]:
        """This region, and all in it."""
        yield self
        for each in self.inner.values():
            yield from each.all()


def regions(calls: Mapping[ir.Node, Sequence[ModuleCall]]) -> tuple[Region, list[ModuleCall]]:
    """Sorts nodes into regions.

    Args:
        calls: The nodes of a graph in order, each with the module calls in which it was made, outermost first.

    Returns:
        The region of the whole graph; and the calls that have none, because other nodes have to run between their nodes.
    """
    flat: dict[str, ModuleCall] = {}
    while True:
        root = _tree(calls, flat)
        stuck = [each for region in root.all() for each in _put_in_order(region)]
        if not stuck:
            return root, list(flat.values())
        flat.update((region.call.key, region.call) for region in stuck if region.call)


def _tree(calls: Mapping[ir.Node, Sequence[ModuleCall]], flat: Mapping[str, ModuleCall]) -> Region:
    """The tree of regions with its edges, without those of the calls in `flat`."""
    root = Region()
    home: dict[ir.Node, Region] = {}
    for node, stack in calls.items():
        region = root
        for call in stack:
            region = region if call.key in flat else region.within(call)
        region.items.append(node)
        home[node] = region
    for node, region in home.items():
        for value in reads(node):
            source = value.producer()
            if source in home:
                _connect(source, home[source].way, node, region.way)
    return root


def _connect(source: ir.Node, above: Sequence[Region], node: ir.Node, way: Sequence[Region]) -> None:
    """Notes in the innermost region around two nodes that one of its items needs another one."""
    common = next(
        (index for index, (one, other) in enumerate(zip(above, way, strict=False)) if one is not other), min(len(above), len(way))
    )
    first = above[common] if common < len(above) else source
    second = way[common] if common < len(way) else node
    above[common - 1].edges[first, second] = None


def _put_in_order(region: Region) -> list[Region]:
    """Sorts the items of a region. Returns the regions in it that need each other or a node that needs them."""
    place = {item: index for index, item in enumerate(region.items)}
    if all(place[first] < place[second] for first, second in region.edges):
        return []
    # NOTE: rarely needed, and slow to import.
    import networkx

    graph = networkx.DiGraph(list(region.edges))
    graph.add_nodes_from(region.items)
    circles = [circle for circle in networkx.strongly_connected_components(graph) if len(circle) > 1]
    if not circles:
        region.items = list(networkx.lexicographical_topological_sort(graph, key=place.__getitem__))
    return sorted((each for circle in circles for each in circle if isinstance(each, Region)), key=place.__getitem__)
