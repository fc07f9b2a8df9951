"""Float64 reference of the K3 text model, token by token, from the formulas of the specification (sections 4 to 9).

It reads the exported files only and shares no code with the training graph.
"""
import numpy as np

from float64_checkpoint import read_config, read_tensors

PREFIX = "language_model."
QK_EPSILON = 1e-6  # section 5, step 6
NO_GAP = 9.0  # larger than any difference of biased scores


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def rms_norm(x, weight, epsilon):
    """Over the last axis."""
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + epsilon) * weight


def l2_normalised(x):
    return x / np.sqrt((x ** 2).sum(-1, keepdims=True) + QK_EPSILON)


def softmax(scores):
    exponentials = np.exp(scores - scores.max(-1, keepdims=True))
    return exponentials / exponentials.sum(-1, keepdims=True)


class Float64Model:
    """One sequence at a time. After step(), `chosen_experts` holds the experts of each MoE layer for that token, and
    `smallest_router_gap` the least distance, since reset(), between the last chosen and the first rejected score."""

    def __init__(self, folder):
        self.config = read_config(folder)
        self.tensors = read_tensors(folder)
        self.epsilon = self.config["rms_norm_eps"]
        self.reset()

    def reset(self):
        """Back to the empty state."""
        self.past_inputs = {}  # (layer, "q" | "k" | "v") -> [3, heads * dim], before the short convolution
        self.kda_state = {}  # layer -> [heads, dim, dim]
        self.mla_cache = {}  # layer -> list of (keys [heads, key], values [heads, value]) per token
        self.smallest_router_gap = NO_GAP
        self.chosen_experts = []

    def step(self, token):
        """Logits [vocabulary] after one more token (section 9)."""
        config, model = self.config, PREFIX + "model."
        running, blocks, self.chosen_experts = self.tensors[model + "embed_tokens.weight"][token], [], []
        for layer in range(config["num_hidden_layers"]):
            running = self._layer(layer, running, blocks)
        mixed = self._mix(running, blocks, model + "output_attn")
        return self.tensors[PREFIX + "lm_head.weight"] @ self._norm(mixed, model + "norm")

    def _layer(self, layer, running, blocks):
        config, name = self.config, f"{PREFIX}model.layers.{layer}."
        x = self._mix(running, blocks, name + "self_attention") if blocks else running
        starts_block = layer % config["attn_res_block_size"] == 0
        if starts_block:
            blocks.append(running)
        is_kda = layer + 1 in config["linear_attn_config"]["kda_layers"]
        attention = self._kda if is_kda else self._mla
        attended = attention(layer, self._norm(x, name + "input_layernorm"), name + "self_attn.")
        running = attended if starts_block else running + attended
        x = self._norm(self._mix(running, blocks, name + "mlp"), name + "post_attention_layernorm")
        is_dense = layer < config["first_k_dense_replace"]
        return running + (self._mlp(x, name + "mlp.") if is_dense else self._moe(x, name + "block_sparse_moe."))

    def _matrix(self, name):
        return self.tensors[name + ".weight"]

    def _norm(self, x, name):
        return rms_norm(x, self._matrix(name), self.epsilon)

    def _mix(self, running, blocks, name):
        """Mixer of the attention residuals (section 9): softmax of one score per source, then the weighted sum."""
        sources = np.array(blocks + [running])
        weight = self._matrix(name + "_res_norm") * self._matrix(name + "_res_proj")[0]
        return softmax(rms_norm(sources, weight, self.epsilon).sum(-1)) @ sources

    def _kda(self, layer, x, name):
        """Section 5; comments name its steps."""
        sizes = self.config["linear_attn_config"]
        heads, dim = sizes["num_heads"], sizes["head_dim"]
        q0, k0, value = (self._short_convolution(layer, x, name, stream).reshape(heads, dim) for stream in "qkv")
        query, key = l2_normalised(q0) * dim ** -0.5, l2_normalised(k0)  # 6
        log_decay = self._log_decay(x, name, heads, dim)
        beta = sigmoid(self._matrix(name + "b_proj") @ x)  # 5
        state = self.kda_state.get(layer, np.zeros((heads, dim, dim))) * np.exp(log_decay)[:, :, None]  # 7
        prediction = (key[:, None] @ state)[:, 0]
        state = state + (beta[:, None] * key)[:, :, None] * (value - prediction)[:, None]
        self.kda_state[layer] = state
        output = self._norm((query[:, None] @ state)[:, 0], name + "o_norm")  # 8
        gate = sigmoid((self._matrix(name + "g_proj") @ x).reshape(heads, dim))
        return self._matrix(name + "o_proj") @ (output * gate).reshape(-1)

    def _short_convolution(self, layer, x, name, stream):
        """Steps 1 and 2: projection, convolution over four tokens, SiLU. Returns [heads * dim]."""
        projected = self._matrix(name + stream + "_proj") @ x
        past = self.past_inputs.get((layer, stream), np.zeros((3, len(projected))))
        window = np.concatenate([past, projected[None]])
        self.past_inputs[layer, stream] = window[1:]
        convolved = (window * self._matrix(name + stream + "_conv1d")[:, 0].T).sum(0)
        return convolved * sigmoid(convolved)

    def _log_decay(self, x, name, heads, dim):
        """Step 4, bounded form. Returns [heads, dim]."""
        low_rank = self._matrix(name + "f_b_proj") @ (self._matrix(name + "f_a_proj") @ x)
        logits = (low_rank + self.tensors[name + "dt_bias"]).reshape(heads, dim)
        rate = np.exp(self.tensors[name + "A_log"].reshape(-1)[:heads])
        return self.config["linear_attn_config"]["gate_lower_bound"] * sigmoid(rate[:, None] * logits)

    def _mla(self, layer, x, name):
        """Section 6, with per-head keys and values in the cache."""
        config = self.config
        heads, key_width = config["num_attention_heads"], config["qk_nope_head_dim"]
        query_width = key_width + config["qk_rope_head_dim"]
        query_latent = self._norm(self._matrix(name + "q_a_proj") @ x, name + "q_a_layernorm")
        query = (self._matrix(name + "q_b_proj") @ query_latent).reshape(heads, query_width)
        self.mla_cache.setdefault(layer, []).append(self._key_and_value(x, name, heads, key_width))
        keys = np.stack([key for key, _ in self.mla_cache[layer]], 1)  # [heads, tokens, query_width]
        values = np.stack([value for _, value in self.mla_cache[layer]], 1)
        probabilities = softmax((keys @ query[:, :, None])[:, :, 0] * query_width ** -0.5)
        context = (probabilities[:, None] @ values)[:, 0].reshape(-1)
        return self._matrix(name + "o_proj") @ (context * sigmoid(self._matrix(name + "g_proj") @ x))

    def _key_and_value(self, x, name, heads, key_width):
        """(keys [heads, own + shared width], values [heads, value width]) of one token."""
        rank, value_width = self.config["kv_lora_rank"], self.config["v_head_dim"]
        compressed = self._matrix(name + "kv_a_proj_with_mqa") @ x
        latent = self._norm(compressed[:rank], name + "kv_a_layernorm")
        own = (self._matrix(name + "kv_b_proj") @ latent).reshape(heads, key_width + value_width)
        shared = np.repeat(compressed[None, rank:], heads, 0)
        return np.concatenate([own[:, :key_width], shared], 1), own[:, key_width:]

    def _situ(self, gate, up):
        """Section 8."""
        beta, linear_beta = self.config["activation_situ_beta"], self.config["activation_situ_linear_beta"]
        return beta * np.tanh(gate / beta) * sigmoid(gate) * linear_beta * np.tanh(up / linear_beta)

    def _mlp(self, x, name):
        hidden = self._situ(self._matrix(name + "gate_proj") @ x, self._matrix(name + "up_proj") @ x)
        return self._matrix(name + "down_proj") @ hidden

    def _moe(self, x, name):
        """Section 7."""
        chosen, weights = self._route(x, name)
        latent = self._matrix(name + "routed_expert_down_proj") @ x
        total = sum(weight * self._expert(latent, f"{name}experts.{expert}.")
                    for expert, weight in zip(chosen, weights))
        routed = self._matrix(name + "routed_expert_up_proj") @ self._norm(total, name + "routed_expert_norm")
        return routed + self._mlp(x, name + "shared_experts.")

    def _route(self, x, name):
        """(chosen experts, best first; their weights): the bias counts for the choice, not for the weights."""
        count = self.config["num_experts_per_token"]
        scores = sigmoid(self._matrix(name + "gate") @ x)
        biased = scores + self.tensors[name + "gate.e_score_correction_bias"]
        order = np.argsort(-biased, kind="stable")
        chosen = order[:count]
        self.smallest_router_gap = min(self.smallest_router_gap, biased[order[count - 1]] - biased[order[count]])
        self.chosen_experts.append(chosen.tolist())
        return chosen, scores[chosen] / (scores[chosen].sum() + 1e-20) * self.config["routed_scaling_factor"]

    def _expert(self, latent, name):
        hidden = self._situ(self._matrix(name + "w1") @ latent, self._matrix(name + "w3") @ latent)
        return self._matrix(name + "w2") @ hidden
