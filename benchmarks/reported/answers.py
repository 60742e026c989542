"""Reports that people made in public, each with the recipe that does the same here, and the right answer."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Way(Enum):
    """How a recipe is asked: its good run against its bad one, or in another way where that tells nothing."""

    TWO_FILES = "align diff"
    REPEAT = "align diff of two repeats"
    JOB = "align inspect of two ranks"
    ONE_AND_TWO_RANKS = "align diff of one process and rank 0 of two"


@dataclass(frozen=True, slots=True)
class Reported:
    """One kind of report.

    `first` is where the runs part, or what the finding of one job points to, as `step:phase:name`; `init` is before
    step 0, `*` is anything, empty is nowhere. `label` is what the first error or warning must be called, or one
    of the notes where there is none. `options` are those of the capture.
    """

    title: str
    recipe: str
    first: str
    label: str
    sources: tuple[str, ...]
    way: Way = Way.TWO_FILES
    options: tuple[str, ...] = ()


REPORTED = (
    Reported(
        "the loss grows with the number of accumulation steps",
        "undivided_loss",
        "0:loss:loss",
        "loss-normalization",
        ("https://github.com/hiyouga/LlamaFactory/issues/7443",),
    ),
    Reported(
        "ranks with unequal numbers of targets average their means",
        "rank_token_means",
        "0:update:embed",
        "loss-normalization",
        (
            "https://github.com/pytorch/torchtitan/pull/1803",
            "https://github.com/huggingface/transformers/issues/34242",
            "https://github.com/PrimeIntellect-ai/prime-rl/pull/2562",
        ),
        way=Way.ONE_AND_TWO_RANKS,
    ),
    Reported(
        "micro-batches are weighted by samples, the loss by tokens",
        "sample_weighted_micros",
        "0:loss:loss",
        "loss-normalization",
        ("https://github.com/verl-project/verl/issues/5625",),
    ),
    Reported(
        "labels are shifted by the model and by the loss",
        "double_shift",
        "0:loss:loss",
        "labels-differ",
        (
            "https://github.com/huggingface/transformers/issues/47394",
            "https://github.com/huggingface/transformers/pull/46898",
        ),
    ),
    Reported(
        "a batch in which no target counts",
        "all_ignored",
        "2:loss:loss",
        "nan-origin",
        (
            "https://github.com/allenai/OLMo-core/pull/657",
            "https://github.com/pytorch/pytorch/issues/116349",
            "https://github.com/Ascend/MindSpeed/blob/HEAD/docs/zh/FAQ.md",
        ),
    ),
    Reported(
        "the gradient of the branch that `where` left out",
        "where_sqrt",
        "0:backward:dist",
        "nan-origin",
        (
            "https://github.com/pytorch/pytorch/issues/68425",
            "https://github.com/pytorch/pytorch/issues/187297",
            "https://github.com/pytorch/pytorch/issues/2421",
        ),
    ),
    Reported(
        "sines of arguments around a million",
        "large_angle",
        "",
        "within-noise",
        ("https://github.com/pytorch/pytorch/issues/180103",),
    ),
    Reported(
        "clipping of gradients that carry the loss scale",
        "clip_before_unscale",
        "0:update:hidden",
        "clip-before-unscale",
        (
            "https://github.com/Lightning-AI/pytorch-lightning/issues/9599",
            "https://github.com/milesial/Pytorch-UNet/issues/468",
            "https://github.com/harubaru/waifu-diffusion/issues/64",
        ),
    ),
    Reported(
        "weights for bfloat16's range in float16",
        "overflow_collapse",
        "0:forward:up",
        "overflow",
        (
            "https://github.com/yangjianxin1/Firefly/issues/68",
            "https://github.com/hiyouga/LlamaFactory/issues/251",
            "https://github.com/ymcui/Chinese-LLaMA-Alpaca/issues/534",
            "https://github.com/lucidrains/stylegan2-pytorch/issues/100",
        ),
    ),
    Reported(
        "a loss scale that changes by more than one halving",
        "scale_overwritten",
        "3:backward:up",
        "loss-scale-unstable",
        ("https://github.com/pytorch/pytorch/issues/157436",),
        options=("--steps", "0:4"),
    ),
    Reported(
        "gradients divided by the scale of the next step",
        "unscale_after_growth",
        "3:update:hidden",
        "gradient-scaled",
        ("https://github.com/deepspeedai/DeepSpeed/pull/8588",),
        options=("--steps", "0:4"),
    ),
    Reported(
        "a device that makes the greatest number of Inf",
        "saturating_overflow",
        "2:forward:gate",
        "overflow-saturated",
        ("https://hiascend.com/document/detail/zh/canncommercial/80RC22/apiref/envvar/envref_07_0048.html",),
    ),
    Reported(
        "an update that the scaler wanted skipped",
        "skip_ignored",
        "2:param:hidden",
        "skipped-step-applied",
        ("https://github.com/pytorch/pytorch/pull/186360",),
    ),
    Reported(
        "matrix products with shortened operands",
        "shortened_products",
        "",
        "precision-mode-differs",
        (
            "https://github.com/pytorch/pytorch/issues/61890",
            "https://github.com/pytorch/pytorch/issues/67384",
            "https://github.com/pytorch/pytorch/issues/84334",
        ),
    ),
    Reported(
        "rotary frequencies in bfloat16",
        "rope_bf16",
        "init:init:rope",
        "buffer-differs",
        (
            "https://github.com/huggingface/transformers/pull/29285",
            "https://github.com/EleutherAI/gpt-neox/pull/1016",
            "https://github.com/huggingface/candle/pull/3520",
        ),
    ),
    Reported(
        "an embedding gradient summed in bfloat16",
        "bf16_embedding",
        "0:gradient:embed",
        "backward-operator-differs",
        ("https://github.com/Ascend/msprobe/blob/HEAD/docs/zh/best_practices/train_debug_guide.md",),
    ),
    Reported(
        "a norm whose weight is an offset from one",
        "norm_weight_offset",
        "0:forward:layers.0.input_norm",
        "module-config-differs",
        (
            "https://github.com/linkedin/Liger-Kernel/issues/74",
            "https://github.com/pytorch/executorch/pull/19901",
            "https://github.com/kekzl/imp/pull/1289",
            "https://github.com/utensils/mold/pull/1078",
        ),
    ),
    Reported(
        "another epsilon in one norm",
        "key_norm_eps",
        "0:forward:attn.k_norm",
        "module-config-differs",
        (
            "https://github.com/verl-project/verl/blob/HEAD/docs/ascend_tutorial/dev_guide/model_dev/transfer_to_npu_guide.md",
        ),
    ),
    Reported(
        "a constant factor left out in one engine",
        "indexer_scale",
        "0:forward:indexer.weights",
        "structure-differs",
        (
            "https://github.com/verl-project/verl/blob/HEAD/docs/ascend_tutorial/dev_guide/model_dev/transfer_to_npu_guide.md",
        ),
    ),
    Reported(
        "a wrong kernel of GELU",
        "gelu_operator",
        "0:forward:blocks.0.act",
        "operator-differs",
        ("https://github.com/Ascend/msprobe/blob/HEAD/docs/zh/best_practices/train_debug_guide.md",),
    ),
    Reported(
        "GELU by tanh and by erf",
        "gelu_tanh",
        "0:forward:blocks.0.act",
        "module-config-differs",
        (
            "https://github.com/kyutai-labs/pocket-tts/pull/278",
            "https://github.com/Lightning-AI/litgpt/issues/1031",
        ),
    ),
    Reported(
        "a mask of another shape for packed attention",
        "packed_mask",
        "0:forward:blocks.0.fa",
        "operator-differs",
        ("https://github.com/Ascend/msprobe/blob/HEAD/docs/zh/best_practices/train_debug_guide.md",),
    ),
    Reported(
        "a rotation that does not keep lengths",
        "rope_norm",
        "0:forward:attn.rope",
        "operator-differs",
        ("https://github.com/vllm-project/vllm-ascend/issues/12723",),
    ),
    Reported(
        "the last columns of a head size that the kernel does not divide",
        "head_size_tail",
        "0:forward:attn",
        "operator-differs",
        ("https://github.com/MinghuasLab/flash-attention-npu/issues/135",),
    ),
    Reported(
        "gradients that are a little off, more with every layer",
        "backward_gain",
        "0:backward:layers.7.act",
        "backward-operator-differs",
        ("https://github.com/Ascend/pytorch/issues/107",),
    ),
    Reported(
        "half of the partial sums of a norm's gradient",
        "half_norm_gradient",
        "0:gradient:norm",
        "backward-operator-differs",
        (
            "https://github.com/pytorch/pytorch/issues/183861",
            "https://github.com/pytorch/pytorch/pull/140259",
        ),
    ),
    Reported(
        "a fused softmax that masks more",
        "fused_softmax",
        "0:forward:attn.softmax",
        "operator-differs",
        (
            "https://github.com/NVIDIA/Megatron-LM/issues/132",
            "https://github.com/NVIDIA/apex/issues/1493",
        ),
    ),
    Reported(
        "epsilon inside and outside of the root",
        "rmsprop_eps",
        "0:param:fc",
        "optimizer-formula-differs",
        (
            "https://github.com/pytorch/pytorch/issues/23796",
            "https://github.com/chainer/chainer/issues/4754",
        ),
    ),
    Reported(
        "weights split and stacked again in another order",
        "qkv_restacked",
        "init:init:attn.qkv",
        "weight-permuted",
        (
            "https://github.com/vllm-project/vime/issues/274",
            "https://github.com/vllm-project/vime/pull/275",
        ),
        options=("--keep", "init"),
    ),
    Reported(
        "gate and up biases merged shard by shard",
        "swiglu_bias_merge",
        "init:init:mlp.up",
        "weight-permuted",
        (
            "https://github.com/NVIDIA/Megatron-LM/pull/346",
            "https://github.com/ml-explore/mlx-lm/pull/767",
        ),
    ),
    Reported(
        "keys with a prefix, loaded with strict=False",
        "prefix_strict_false",
        "init:init:embed",
        "checkpoint-keys",
        (
            "https://github.com/FareedKhan-dev/train-llm-from-scratch/issues/36",
            "https://github.com/karpathy/nanoGPT/issues/325",
            "https://github.com/huggingface/pytorch-image-models/pull/2003",
        ),
    ),
    Reported(
        "a head that is tied again on resume",
        "tied_head",
        "init:init:head",
        "tied-weight-broken",
        (
            "https://github.com/NVIDIA-NeMo/Automodel/issues/2571",
            "https://github.com/huggingface/transformers/pull/42612",
            "https://github.com/vllm-project/vllm/pull/51665",
        ),
    ),
    Reported(
        "a schedule that is advanced once for each process",
        "scheduler_world_size",
        "1:param:hidden",
        "learning-rate-differs",
        (
            "https://github.com/huggingface/transformers/pull/24088",
            "https://github.com/huggingface/accelerate/issues/2926",
            "https://github.com/jzhang38/EasyContext/issues/21",
        ),
        options=("--steps", "0:2"),
    ),
    Reported(
        "weight decay of norms in one of the runs",
        "norm_decay_group",
        "0:param:norm",
        "weight-decay-groups",
        (
            "https://github.com/huggingface/transformers/pull/35927",
            "https://github.com/ServiceNow/Fast-LLM/issues/542",
            "https://github.com/deepspeedai/DeepSpeedExamples/pull/755",
        ),
    ),
    Reported(
        "dropout drawn anew when it is recomputed",
        "recompute_rng",
        "0:backward:*",
        "recompute-differs",
        (
            "https://github.com/allenai/OLMo-core/pull/828",
            "https://github.com/pytorch/pytorch/pull/194478",
            "https://github.com/openai/guided-diffusion/issues/167",
        ),
    ),
    Reported(
        "one seed for the dropout of all ranks",
        "rank_same_masks",
        "0:forward:drop",
        "rng-duplicated",
        (
            "https://github.com/huggingface/transformers/issues/31412",
            "https://github.com/InternLM/InternLM/pull/405",
            "https://github.com/tenstorrent/tt-metal/issues/55947",
        ),
        way=Way.JOB,
    ),
    Reported(
        "one rank draws a number more",
        "rank_extra_draw",
        "0:forward:drop",
        "rng-mismatch",
        ("https://github.com/bigscience-workshop/Megatron-DeepSpeed/pull/276",),
        way=Way.JOB,
    ),
    Reported(
        "dropout that an evaluation switches off for good",
        "fused_dropout_rate",
        "3:forward:attn",
        "train-eval-mode",
        (
            "https://github.com/NVIDIA/Megatron-LM/pull/411",
            "https://github.com/karpathy/nanoGPT/pull/240",
        ),
        options=("--steps", "0:4"),
    ),
    Reported(
        "gradients reduced over a group of one",
        "rank_partial_gradient",
        "0:update:*",
        "gradients-not-reduced",
        ("https://github.com/ByteDance-Seed/VeOmni/pull/1086",),
        way=Way.JOB,
    ),
    Reported(
        "a gradient norm that counts replicated parameters again",
        "rank_norm_replicas",
        "0:*:*",
        "gradient-norm-differs",
        ("https://github.com/mindspore-ai/hyper-parallel/issues/279",),
        way=Way.JOB,
    ),
    Reported(
        "runs with other parallel wrappers",
        "parallel_settings",
        "",
        "environment-differs",
        ("https://github.com/Ascend/msprobe/blob/HEAD/docs/zh/best_practices/train_debug_guide.md",),
    ),
    Reported(
        "a sampler that is not told the epoch",
        "epoch_order",
        "4:input:x",
        "data-order",
        (
            "https://github.com/pytorch/pytorch/issues/31771",
            "https://github.com/pytorch/pytorch/issues/11324",
        ),
        options=("--steps", "0:12"),
    ),
    Reported(
        "packed samples that see each other",
        "packed_positions",
        "0:forward:layers.0.attn",
        "origin-functional",
        (
            "https://github.com/huggingface/transformers/pull/46634",
            "https://github.com/hiyouga/LlamaFactory/pull/7318",
            "https://github.com/huggingface/nanoVLM/issues/201",
        ),
    ),
    Reported(
        "an operator without a deterministic kernel",
        "scatter_order",
        "",
        "nondeterministic",
        ("https://github.com/Ascend/msprobe/blob/HEAD/docs/zh/best_practices/train_debug_guide.md",),
        way=Way.REPEAT,
    ),
    Reported(
        "a buffer that is overwritten before its reader is done",
        "overwritten_gradient",
        "0:gradient:post_attention_layernorm",
        "isolated-corruption",
        ("https://github.com/Ascend/msprobe/blob/HEAD/docs/zh/best_practices/train_debug_guide.md",),
    ),
    Reported(
        "sums in bfloat16 in another order",
        "bf16_split",
        "",
        "within-noise",
        ("https://developer.aliyun.com/article/1661366",),
    ),
)
