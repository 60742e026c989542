"""What the benchmark is made of, without torch: models, classes of precision, kinds of faults and their sizes."""

from __future__ import annotations

from dataclasses import dataclass

MODELS = ("gpt2", "llama", "cnn", "gru", "moe")
CLASSES = ("fp32", "tf32", "bf16", "fp16")
SIZES = ("large", "small")
PARTS = ("forward", "functional", "backward", "optimizer")
"""Where a fault sits: in a module, in the code between modules, in a backward, in the update."""

ATTENTION = ("gpt2", "llama", "moe")
LARGE, SMALL = ("large",), ("small",)


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of fault: what is wrong when it is large and when it is small, and where it can be."""

    name: str
    part: str
    large: str
    small: str
    sizes: tuple[str, ...] = SIZES
    models: tuple[str, ...] = MODELS
    classes: tuple[str, ...] = CLASSES

    def fits(self, model: str, precision: str) -> bool:
        """Whether a model of this name, trained in this class, can have the fault."""
        return model in self.models and precision in self.classes


KINDS: tuple[Kind, ...] = (
    Kind("output_scale", "forward", "a module's output x1.3", "x1.01"),
    Kind("output_scale_fine", "forward", "", "a module's output x1.0001", sizes=SMALL, classes=("fp32",)),
    Kind("channel_scale", "forward", "one channel of a module's output x2", "x1.05"),
    Kind("element_add", "forward", "one element of a module's output + 1 rms", "+ 0.03 rms"),
    Kind("norm_eps", "forward", "epsilon of a norm 0.1", "0.001"),
    Kind("bias_dropped", "forward", "a bias left out", "a bias x0.9", models=("gpt2", "gru", "moe", "cnn")),
    Kind("activation_formula", "forward", "another activation", "an approximation of the activation"),
    Kind("accumulation", "forward", "running sums in bf16, pieces of 4", "of half the sum"),
    Kind("weight_cast", "forward", "weights with 3 bits of mantissa", "with 7 bits (bf16: 5)"),
    Kind("saturation", "forward", "output cut at 1 rms", "at 2.5 rms"),
    Kind("batch_norm_eval", "forward", "batch norm takes the running statistics", "", sizes=LARGE, models=("cnn",)),
    Kind("padding_mode", "forward", "convolution pads circularly", "with the edge", models=("cnn",)),
    Kind("rope_base", "forward", "positions of the rotary table x1.3", "x1.01", models=("llama",)),
    Kind("gate_formula", "functional", "gates swapped", "update gate x1.01", models=("gru",)),
    Kind("attention_scale", "functional", "scale of the scores left out", "x1.01", models=ATTENTION),
    Kind("mask", "functional", "no causal mask", "one element of the mask open", models=ATTENTION),
    Kind("softmax_short", "functional", "softmax with 3 bits of mantissa", "with 7 bits (bf16: 5)", models=ATTENTION),
    Kind("heads_swapped", "functional", "two heads swapped", "in one sample only", models=ATTENTION),
    Kind("positions_off", "functional", "positions off by one", "", sizes=LARGE, models=("gpt2", "moe")),
    Kind("rope_interleaved", "functional", "interleaved halves", "one product x1.01", models=("llama",)),
    Kind("residual", "functional", "residual branch doubled", "x1.01"),
    Kind("residual_channel", "functional", "one channel of the sum x2", "x1.05"),
    Kind("pooling", "functional", "mean over one pixel less", "x1.01", models=("cnn",)),
    Kind("router_top_k", "functional", "only the first expert", "one token loses its second", models=("moe",)),
    Kind("gate_scale", "functional", "gates not normalised again", "gates x1.01", models=("moe",)),
    Kind("loss_scale", "functional", "loss x1.3", "x1.001"),
    Kind("norm_backward", "backward", "mean terms left out", "1 % of them", models=("gpt2", "llama", "gru", "moe")),
    Kind("input_gradient", "backward", "gradient of a module's input x2", "x1.01"),
    Kind("gradient_channel", "backward", "one channel of the gradient x2", "x1.05"),
    Kind("gradient_flush", "backward", "gradients below 0.3 rms are 0", "below 0.03 rms"),
    Kind("residual_gradient", "backward", "gradient into a residual branch x2", "x1.01"),
    Kind("softmax_backward", "backward", "sum term left out", "1 % of it", models=ATTENTION),
    Kind("weight_gradient", "backward", "gradient of one weight x2", "x1.01"),
    Kind("weight_gradient_short", "backward", "gradient of one weight with 3 bits", "with 7 bits (bf16: 5)"),
    Kind("all_gradients", "backward", "all gradients x2", "x1.01"),
    Kind("one_update_gradient", "optimizer", "gradient x2 after clipping", "x1.01"),
    Kind("learning_rate", "optimizer", "rate x1.3, not in the settings", "x1.01"),
    Kind("weight_decay", "optimizer", "decay 10 of norms and biases", "decay 0.1"),
    Kind("epsilon", "optimizer", "epsilon 1e-3", "1e-6"),
    Kind("beta", "optimizer", "first beta 0.8", "0.89"),
    Kind("one_update", "optimizer", "update of one parameter x1.3", "x1.01"),
    Kind("clip_first", "optimizer", "clipped before the loss scale is undone", "", sizes=LARGE, classes=("fp16",)),
)

KIND_OF = {kind.name: kind for kind in KINDS}
