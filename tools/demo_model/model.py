"""The training graph: the text model of Kimi K3 at toy size, on rows of equal length with zero state at their start."""
import torch
from torch import nn

from model_parameters import initial_parameters
from model_sizes import DEMO
from operations import Experts, HeadLoss, Kda, Mixer, Mla, RmsNorm, RoundToMxfp4, Router, Situ


class Model(nn.Module):
    """Weights (see model_parameters.py) and forward pass (specification sections 4 to 9).

    After a pass, `tokens_of_expert` [experts] and `chosen_experts` [rows, chosen] hold the routing of every MoE layer.
    In the shapes below, rows is batch times tokens.
    """

    def __init__(self, sizes=DEMO, seed=1):
        super().__init__()
        self.sizes = sizes
        self.weights = initial_parameters(sizes, torch.Generator().manual_seed(seed))
        for layer in range(1, sizes.layers):
            self.register_buffer(f"router_bias{layer}", torch.zeros(sizes.experts))
        self.tokens_of_expert, self.chosen_experts = {}, {}

    def router_bias(self, layer):
        return getattr(self, f"router_bias{layer}")

    def stored_values(self):
        """Name -> tensor of everything that a checkpoint stores: the weights and `<layer>/router_bias`.

        The tensors share memory with the model and carry no gradient.
        """
        values = {name: weight.data for name, weight in self.weights.items()}
        for layer in range(1, self.sizes.layers):
            values[f"{layer}/router_bias"] = self.router_bias(layer)
        return values

    def loss(self, ids, targets, rounded=True):
        """Mean loss in nats; ids and targets [batch, tokens], negative targets are ignored."""
        return HeadLoss.apply(self.hidden(ids, rounded), self.weights["head"], targets.reshape(-1))

    def logits(self, ids, rounded=True):
        """ids [batch, tokens] -> [batch, tokens, vocabulary]."""
        return (self.hidden(ids, rounded) @ self.weights["head"].T).view(*ids.shape, -1)

    def hidden(self, ids, rounded=True):
        """ids [batch, tokens] -> final normalised hidden states [rows, hidden].

        rounded: round the routed experts to MXFP4, as in training.
        """
        batch, tokens = ids.shape
        running, blocks = self.weights["embedding"][ids.reshape(-1)], []
        for layer in range(self.sizes.layers):
            running = self._layer(running, blocks, layer, batch, tokens, rounded)
        return self._norm(self._mix(running, blocks, "output_mixer"), "final_norm")

    def _layer(self, running, blocks, layer, batch, tokens, rounded):
        """Section 9: `running` is the sum P [rows, hidden], `blocks` the list B, which may grow."""
        x = self._mix(running, blocks, f"{layer}/attention_mixer") if blocks else running
        starts_block = layer % self.sizes.residual_block == 0
        if starts_block:
            blocks.append(running)
        attention = self._mla if self.sizes.is_mla(layer) else self._kda
        attended = attention(self._norm(x, f"{layer}/attention_norm"), f"{layer}/", batch, tokens)
        running = attended if starts_block else running + attended
        x = self._norm(self._mix(running, blocks, f"{layer}/ffn_mixer"), f"{layer}/ffn_norm")
        return running + (self._gated_mlp(x, "0/dense") if layer == 0 else self._moe(x, layer, rounded))

    def _norm(self, x, name):
        return RmsNorm.apply(x, self.weights[name], self.sizes.epsilon)

    def _mix(self, running, blocks, name):
        score_weight = self.weights[name + "_norm"] * self.weights[name + "_proj"]
        return Mixer.apply(score_weight, self.sizes.epsilon, *blocks, running)

    def _kda(self, x, prefix, batch, tokens):
        """x [rows, hidden] -> [rows, hidden] (section 5)."""
        weight = lambda name: self.weights[prefix + name]
        decay_logits = (x @ weight("decay_down").T) @ weight("decay_up").T + weight("decay_bias")
        out = Kda.apply(x @ weight("kda_in").T, decay_logits, weight("conv"), weight("decay_log"),
                        weight("kda_out_norm"), (batch, tokens, self.sizes.kda_heads), self.sizes.epsilon)
        return out @ weight("attention_out").T

    def _mla(self, x, prefix, batch, tokens):
        """x [rows, hidden] -> [rows, hidden] (section 6)."""
        sizes, weight = self.sizes, lambda name: self.weights[prefix + name]
        parts = (x @ weight("mla_in").T).split(sizes.mla_input_parts, -1)
        query_latent, kv_latent, shared_key, gate = parts
        query = self._norm(query_latent.contiguous(), prefix + "query_latent_norm") @ weight("query_up").T
        kv = self._norm(kv_latent.contiguous(), prefix + "kv_latent_norm") @ weight("kv_up").T
        attention_sizes = (batch, tokens, sizes.mla_heads, sizes.key_width, sizes.shared_key_width, sizes.value_width)
        out = Mla.apply(query, kv, shared_key.contiguous(), attention_sizes)
        return (out * torch.sigmoid(gate)) @ weight("attention_out").T

    def _gated_mlp(self, x, name):
        return Situ.apply(x @ self.weights[name + "_gate_up"].T) @ self.weights[name + "_down"].T

    def _moe(self, x, layer, rounded):
        """x [rows, hidden] -> [rows, hidden] (section 7)."""
        weight = lambda name: self.weights[f"{layer}/{name}"]
        routing = Router.apply(x @ weight("router").T, self.router_bias(layer), self.sizes.chosen_experts)
        mixture, self.chosen_experts[layer], self.tokens_of_expert[layer] = routing
        gate_up, down = weight("expert_gate_up"), weight("expert_down")
        if rounded:
            gate_up, down = RoundToMxfp4.apply(gate_up), RoundToMxfp4.apply(down)
        y = Experts.apply(x @ weight("latent_down").T, self.chosen_experts[layer], mixture, gate_up, down)
        y = self._norm(y, f"{layer}/latent_norm") @ weight("latent_up").T
        return y + self._gated_mlp(x, f"{layer}/shared")

    @torch.no_grad()
    def balance(self, rate):
        """Balancing without an auxiliary loss: the bias rises for experts used less than average, and else falls."""
        for layer, counts in self.tokens_of_expert.items():
            bias = self.router_bias(layer)
            bias += rate * torch.sign(counts.float().mean() - counts.float())
            bias -= bias.mean()
