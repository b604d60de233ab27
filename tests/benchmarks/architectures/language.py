"""Language models of transformers: encoders, decoders, mixtures of experts, state spaces and recurrences, encoders with decoders."""

from __future__ import annotations

import zoo

from .architecture import BART, DECODER, ENCODER, T5, TEXT, TEXTS, Config, Family, Given, ids, of_transformers, text

_GPT: Config = {"vocab_size": 500, "n_embd": 64, "n_layer": 2, "n_head": 4, "use_cache": False}
_EXPERTS: Config = {
    **DECODER,
    "num_experts": 4,
    "num_local_experts": 4,
    "n_routed_experts": 4,
    "moe_num_experts": 4,
    "num_experts_per_tok": 2,
    "moe_k": 2,
    "moe_intermediate_size": 32,
    "shared_expert_intermediate_size": 32,
    "decoder_sparse_step": 1,
}
_LATENT: Config = {
    **_EXPERTS,
    "num_key_value_heads": 4,
    "n_shared_experts": 1,
    "n_group": 2,
    "topk_group": 1,
    "first_k_dense_replace": 1,
    "q_lora_rank": 32,
    "kv_lora_rank": 16,
    "qk_nope_head_dim": 16,
    "qk_rope_head_dim": 8,
    "v_head_dim": 16,
    "head_dim": 8,
}
_MAMBA: Config = {**DECODER, "state_size": 8, "time_step_rank": 8, "conv_kernel": 4, "expand": 2}
_MAMBA2: Config = {
    **DECODER,
    "mamba_n_heads": 8,
    "mamba_d_head": 16,
    "mamba_d_state": 8,
    "mamba_n_groups": 1,
    "mamba_chunk_size": 8,
    "mamba_d_ssm": 128,
}


def _tokens(batch: int = 2, length: int = 16) -> zoo.Inputs:
    return zoo.Inputs(kwargs={"input_ids": ids(batch, length)})


def _long_text(batch: int = 2, length: int = 64) -> zoo.Inputs:
    return text(batch, length)


def _long_texts(batch: int = 2, length: int = 64, written: int = 8) -> zoo.Inputs:
    return zoo.Inputs(kwargs={**text(batch, length).kwargs, "decoder_input_ids": ids(batch, written)})


_TOKENS = Given(_tokens, batch=3, length=24)
_LONG_TEXT = Given(_long_text, batch=3, length=96)
_LONG_TEXTS = Given(_long_texts, batch=3, length=96, written=11)

FAMILIES: dict[str, Family] = {
    "text-encoder": {
        **of_transformers(
            TEXT,
            ENCODER,
            XLMRobertaModel={},
            CamembertModel={},
            XLMRobertaXLModel={},
            RobertaPreLayerNormModel={},
            Data2VecTextModel={},
            ErnieModel={},
            NomicBertModel={"head_dim": 16},
            EuroBertModel={"num_key_value_heads": 2, "head_dim": 16},
            DebertaModel={"relative_attention": True, "pos_att_type": ["c2p", "p2c"]},
            NystromformerModel={"segment_means_seq_len": 16, "num_landmarks": 16},
            RemBertModel={"input_embedding_size": 32, "output_embedding_size": 32},
            MobileBertModel={"embedding_size": 32, "intra_bottleneck_size": 32, "num_feedforward_networks": 2, "true_hidden_size": 32},
            IBertModel={},
            LayoutLMModel={},
            LiltModel={"hidden_size": 96, "channel_shrink_ratio": 4},
            SplinterModel={},
            XmodModel={"languages": ["en_XX"], "default_language": "en_XX"},
            EsmModel={"mask_token_id": 2, "position_embedding_type": "rotary"},
            MarkupLMModel={},
            TapasModel={},
            CanineModel={"num_hash_buckets": 64, "local_transformer_stride": 4, "downsampling_rate": 4, "num_hash_functions": 4},
            YosoModel={"use_expectation": True},
        ),
        **of_transformers(TEXT, {"vocab_size": 500, "emb_dim": 64, "n_layers": 2, "n_heads": 4}, XLMModel={}, FlaubertModel={}),
        **of_transformers(
            TEXT,
            {
                "vocab_size": 500,
                "block_sizes": [1, 1, 1],
                "d_model": 64,
                "n_head": 4,
                "d_head": 16,
                "d_inner": 128,
                "num_decoder_layers": 1,
            },
            FunnelModel={},
            FunnelBaseModel={},
        ),
        **of_transformers(_LONG_TEXT, {**ENCODER, "attention_window": [16, 16]}, LongformerModel={}),
        **of_transformers(
            _LONG_TEXT, {**ENCODER, "block_size": 8, "num_random_blocks": 1}, BigBirdForMaskedLM={"attention_type": "original_full"}
        ),
        **of_transformers(
            TEXT, {"vocab_size": 500, "d_model": 64, "n_layer": 2, "n_head": 4, "d_inner": 128, "use_mems_eval": False}, XLNetModel={}
        ),
    },
    "text-decoder": {
        **of_transformers(
            TEXT,
            DECODER,
            GemmaForCausalLM={},
            Gemma3ForCausalLM={"sliding_window": 8, "layer_types": ["sliding_attention", "full_attention"]},
            Phi3ForCausalLM={},
            Olmo2ForCausalLM={},
            Olmo3ForCausalLM={"sliding_window": 8},
            CohereForCausalLM={},
            Cohere2ForCausalLM={"sliding_window": 8},
            Starcoder2ForCausalLM={"sliding_window": 8},
            GraniteForCausalLM={},
            GlmForCausalLM={},
            Glm4ForCausalLM={},
            NemotronForCausalLM={},
            PersimmonForCausalLM={},
            SmolLM3ForCausalLM={},
            Exaone4ForCausalLM={"sliding_window": 8},
            Ernie4_5ForCausalLM={},
            ArceeForCausalLM={},
            HeliumForCausalLM={},
            HunYuanDenseV1ForCausalLM={},
            SeedOssForCausalLM={},
            ApertusForCausalLM={},
            BitNetForCausalLM={},
            DiffLlamaForCausalLM={},
            NanoChatForCausalLM={},
            VaultGemmaForCausalLM={"sliding_window": 8},
            MinistralForCausalLM={"sliding_window": 8},
            MiniCPM3ForCausalLM={
                "head_dim": 8,
                "num_key_value_heads": 4,
                "q_lora_rank": 32,
                "kv_lora_rank": 16,
                "qk_nope_head_dim": 16,
                "qk_rope_head_dim": 8,
                "v_head_dim": 16,
            },
            ModernBertDecoderForCausalLM={"local_attention": 8},
            BioGptForCausalLM={},
            GPTNeoXJapaneseForCausalLM={"intermediate_multiple_size": 2},
            DogeForCausalLM={},
        ),
        **of_transformers(
            TEXT,
            _GPT,
            GPTBigCodeForCausalLM={},
            CodeGenForCausalLM={"rotary_dim": 8},
            OpenAIGPTLMHeadModel={},
            CTRLLMHeadModel={"dff": 128},
        ),
        **of_transformers(
            TEXT,
            {"vocab_size": 500, "hidden_size": 64, "num_layers": 2, "num_heads": 4, "use_cache": False},
            GPTNeoForCausalLM={"attention_types": [[["global", "local"], 1]], "window_size": 8},
        ),
        **of_transformers(TEXT, {"vocab_size": 500, "d_model": 64, "n_layers": 2, "n_heads": 4, "use_cache": False}, MptForCausalLM={}),
        **of_transformers(TEXT, {**ENCODER, "use_cache": False}, FalconForCausalLM={}),
        **of_transformers(
            TEXT,
            {"vocab_size": 500, "d_model": 64, "num_layers": 2, "attention_heads": 4, "ffn_dim": 128, "use_cache": False},
            XGLMForCausalLM={},
        ),
    },
    "experts": {
        **of_transformers(
            TEXT,
            _EXPERTS,
            Qwen2MoeForCausalLM={},
            OlmoeForCausalLM={},
            GptOssForCausalLM={"sliding_window": 8},
            PhimoeForCausalLM={},
            GraniteMoeForCausalLM={},
            GraniteMoeSharedForCausalLM={"shared_intermediate_size": 32},
            JetMoeForCausalLM={"num_key_value_heads": 2, "kv_channels": 16},
            Ernie4_5_MoeForCausalLM={},
            MiniMaxForCausalLM={"block_size": 8},
            MiniMaxM2ForCausalLM={},
            Llama4ForCausalLM={"intermediate_size_mlp": 128, "attention_chunk_size": 8},
            FlexOlmoForCausalLM={},
            HunYuanMoEV1ForCausalLM={"moe_topk": [2, 2]},
            Lfm2MoeForCausalLM={"layer_types": ["conv", "full_attention"], "num_dense_layers": 1},
        ),
        **of_transformers(
            TEXT,
            _LATENT,
            DeepseekV2ForCausalLM={"topk_method": "greedy"},
            DeepseekV3ForCausalLM={},
            Glm4MoeForCausalLM={"num_key_value_heads": 2},
            Dots1ForCausalLM={"num_key_value_heads": 2},
            LongcatFlashForCausalLM={
                "num_layers": 1,
                "ffn_hidden_size": 128,
                "expert_ffn_hidden_size": 32,
                "zero_expert_num": 1,
                "moe_topk": 2,
            },
        ),
        **of_transformers(
            TEXT,
            {"vocab_size": 500, "d_model": 64, "n_layers": 2, "n_heads": 4, "max_seq_len": 64, "use_cache": False},
            DbrxForCausalLM={
                "ffn_config": {"ffn_hidden_size": 64, "moe_num_experts": 4, "moe_top_k": 2, "hidden_size": 64},
                "attn_config": {"kv_n_heads": 2, "clip_qkv": 8.0, "rope_theta": 1e4},
            },
        ),
    },
    "recurrence": {
        **of_transformers(_TOKENS, _MAMBA, MambaForCausalLM={}, FalconMambaForCausalLM={}),
        **of_transformers(_TOKENS, {**_MAMBA, "num_heads": 8, "head_dim": 16, "n_groups": 1, "chunk_size": 8}, Mamba2ForCausalLM={}),
        **of_transformers(TEXT, _MAMBA2, BambaForCausalLM={"attn_layer_indices": [1]}, FalconH1ForCausalLM={}),
        **of_transformers(
            TEXT,
            {**_MAMBA2, "num_local_experts": 4, "num_experts_per_tok": 2, "shared_intermediate_size": 32},
            GraniteMoeHybridForCausalLM={"layer_types": ["mamba", "attention"]},
        ),
        **of_transformers(
            TEXT,
            {**DECODER, "num_experts": 4, "mamba_d_state": 8, "mamba_dt_rank": 8, "use_mamba_kernels": False},
            JambaForCausalLM={"attn_layer_period": 2, "attn_layer_offset": 1, "expert_layer_period": 2, "expert_layer_offset": 1},
        ),
        **of_transformers(
            TEXT,
            {**_MAMBA2, "n_mamba_heads": 8, "mamba_headdim": 16, "chunk_size": 8, "mamba_ngroups": 1},
            Zamba2ForCausalLM={
                "layers_block_type": ["mamba", "hybrid"],
                "hybrid_layer_ids": [1],
                "num_mem_blocks": 1,
                "use_mem_rope": True,
            },
        ),
        **of_transformers(_TOKENS, {**ENCODER, "context_length": 64, "attention_hidden_size": 64, "use_cache": False}, RwkvForCausalLM={}),
        **of_transformers(
            TEXT,
            {**DECODER, "lru_width": 64, "attention_window_size": 8, "block_types": ["recurrent", "attention"]},
            RecurrentGemmaForCausalLM={},
        ),
        **of_transformers(TEXT, {**DECODER, "layer_types": ["conv", "full_attention"]}, Lfm2ForCausalLM={}),
        **of_transformers(
            TEXT,
            {**_EXPERTS, "linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_key_head_dim": 16, "linear_value_head_dim": 16},
            Qwen3NextForCausalLM={"layer_types": ["linear_attention", "full_attention"]},
        ),
        **of_transformers(
            _TOKENS,
            {"vocab_size": 500, "hidden_size": 64, "num_blocks": 2, "num_heads": 4, "use_cache": False, "chunk_size": 8},
            xLSTMForCausalLM={},
        ),
    },
    "encoder-decoder": {
        **of_transformers(
            TEXTS,
            BART,
            BlenderbotModel={},
            BlenderbotSmallModel={},
            PLBartModel={},
            M2M100Model={},
            MvpModel={},
            NllbMoeModel={"num_experts": 4, "encoder_sparse_step": 2, "decoder_sparse_step": 2},
            PegasusXModel={"block_size": 8, "num_global_tokens": 4},
            FSMTModel={"src_vocab_size": 500, "tgt_vocab_size": 500},
        ),
        **of_transformers(
            _LONG_TEXTS,
            BART,
            LEDModel={"attention_window": [16, 16], "max_encoder_position_embeddings": 128, "max_decoder_position_embeddings": 128},
            BigBirdPegasusModel={"attention_type": "block_sparse", "block_size": 8, "num_random_blocks": 1},
        ),
        **of_transformers(TEXTS, T5, UMT5Model={}, SwitchTransformersModel={"num_experts": 4, "num_sparse_encoder_layers": 1}),
        **of_transformers(
            _LONG_TEXTS,
            T5,
            LongT5ForConditionalGeneration={"encoder_attention_type": "transient-global", "local_radius": 8, "global_block_size": 4},
        ),
        **of_transformers(
            TEXTS,
            {
                "vocab_size": 500,
                "hidden_size": 64,
                "encoder_ffn_dim": 128,
                "decoder_ffn_dim": 128,
                "num_encoder_layers": 2,
                "num_decoder_layers": 2,
                "num_encoder_attention_heads": 4,
                "num_decoder_attention_heads": 4,
                "use_cache": False,
                "max_position_embeddings": 64,
            },
            ProphetNetModel={},
        ),
    },
}
"""The architectures by family and name."""
