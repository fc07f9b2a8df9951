"""Float64 forward pass of Kimi-Linear and Kimi K3 text models, from spec/kimi.md sections 4 to 9.

Plain and slow on purpose: whole sequences, per-head loops, the unabsorbed form of MLA.
"""

import numpy as np

import formulas
from generator import all_tensors, decoded_values
from settings import read_settings


class Trace:
    """What a run leaves behind: `layers[i]` holds named intermediate arrays, the rest is per run."""

    def __init__(self, layers):
        self.layers = [{} for _ in range(layers)]
        self.mixers = []
        self.final = None
        self.logits = None

    @property
    def smallest_gap(self):
        """Smallest router gap of the run."""
        return min((float(np.min(layer["gaps"])) for layer in self.layers if "gaps" in layer), default=np.inf)


def generated_weights(config, expert_format=None):
    """name -> values of the hashed checkpoint (15.1); vision tensors are left out."""
    tensors = all_tensors(config, expert_format)
    return {t.name: decoded_values(t) for t in tensors if not t.name.startswith(("vision_tower.", "mm_projector."))}


class Model:
    """A text model. `latent_epsilon` replaces rms_norm_eps in q_a_layernorm and kv_a_layernorm (end of section 6)."""

    def __init__(self, config, weights=None, latent_epsilon=None):
        self.settings = read_settings(config)
        self.latent_epsilon = self.settings.epsilon if latent_epsilon is None else latent_epsilon
        self._stored = generated_weights(config) if weights is None else weights
        self._matrices = {}

    def weight(self, name):
        """A plain tensor by its name without prefix."""
        return self._stored[self.settings.prefix + name]

    def matrix(self, name):
        """`name.weight`, or its MXFP4 pair: decided by which tensors are present (2.3 rule 10)."""
        if name not in self._matrices:
            self._matrices[name] = self._load_matrix(self.settings.prefix + name)
        return self._matrices[name]

    def _load_matrix(self, full):
        if full + ".weight" in self._stored:
            return self._stored[full + ".weight"]
        return formulas.decode_mxfp4(self._stored[full + ".weight_packed"], self._stored[full + ".weight_scale"])

    def apply(self, name, x):
        """W x for each row of x."""
        return x @ self.matrix(name).T

    def norm(self, name, x, epsilon=None):
        """RMS norm with the tensor `name.weight`."""
        epsilon = self.settings.epsilon if epsilon is None else epsilon
        return formulas.rms_norm(x, self.weight(name + ".weight"), epsilon)

    # ---- whole model, section 4

    def run(self, ids):
        """Logits and intermediate values for all positions, from an empty state."""
        trace = Trace(self.settings.layers)
        hidden = self.weight("model.embed_tokens.weight")[list(ids)]
        layers = self._run_mixed if self.settings.residual_block else self._run_plain
        hidden = layers(hidden, trace)
        trace.final = self.norm("model.norm", hidden)
        trace.logits = self.apply("lm_head", trace.final)
        return trace

    def _run_plain(self, hidden, trace):
        for layer, record in enumerate(trace.layers):
            hidden = hidden + self._attention(layer, hidden, record)
            hidden = hidden + self._feed_forward(layer, hidden, record)
            record["residual"] = hidden
        return hidden

    def _run_mixed(self, running, trace):
        """Section 9: the running sum, and block vectors that only the mixers see."""
        blocks = []
        for layer, record in enumerate(trace.layers):
            base = f"model.layers.{layer}."
            x = self._mix(base + "self_attention_res", blocks, running, trace) if blocks else running
            starts_block = layer % self.settings.residual_block == 0
            if starts_block:
                blocks.append(running)
            attention = self._attention(layer, x, record)
            running = attention if starts_block else running + attention
            x = self._mix(base + "mlp_res", blocks, running, trace)
            running = running + self._feed_forward(layer, x, record)
            record["residual"] = running
        return self._mix("model.output_attn_res", blocks, running, trace)

    def _mix(self, base, blocks, running, trace):
        norm, projection = self.weight(base + "_norm.weight"), self.weight(base + "_proj.weight")[0]
        mixed, probability, _ = formulas.mix(blocks + [running], norm, projection, self.settings.epsilon)
        trace.mixers.append(probability)
        return mixed

    # ---- attention

    def _attention(self, layer, x, record):
        base = f"model.layers.{layer}."
        x = self.norm(base + "input_layernorm", x)
        record["attention_input"] = x
        attention = self._kda if self.settings.is_kda(layer) else self._mla
        record["attention_output"] = attention(base + "self_attn.", x, record)
        return record["attention_output"]

    def _kda(self, base, x, record):
        """Section 5."""
        settings = self.settings
        shape = (len(x), settings.kda_heads, settings.kda_dim)
        query, key, value = (self._convolved(base, letter, x, record).reshape(shape) for letter in "qkv")
        log_decay = self._log_decay(base, x).reshape(shape)
        beta = formulas.sigmoid(self.apply(base + "b_proj", x))
        query = formulas.l2_norm(query) * settings.kda_dim**-0.5
        states, output = self._recurrence(query, formulas.l2_norm(key), value, log_decay, beta)
        record.update(log_decay=log_decay, beta=beta, states=states)
        output = self.norm(base + "o_norm", output) * formulas.sigmoid(self._kda_gate(base, x)).reshape(shape)
        return self.apply(base + "o_proj", output.reshape(len(x), -1))

    def _convolved(self, base, letter, x, record):
        projected = self.apply(f"{base}{letter}_proj", x)
        record[letter + "0"] = projected
        return formulas.short_convolution(projected, self.weight(f"{base}{letter}_conv1d.weight"))

    def _log_decay(self, base, x):
        """A_log is per head: the first H values of whatever shape is stored."""
        settings = self.settings
        a_log = np.repeat(self.weight(base + "A_log").reshape(-1)[:settings.kda_heads], settings.kda_dim)
        logits = self.apply(base + "f_b_proj", self.apply(base + "f_a_proj", x)) + self.weight(base + "dt_bias")
        return formulas.decay(logits, a_log, settings.decay_lower_bound)

    def _kda_gate(self, base, x):
        if self.settings.full_rank_gate:
            return self.apply(base + "g_proj", x)
        return self.apply(base + "g_b_proj", self.apply(base + "g_a_proj", x))

    @staticmethod
    def _recurrence(query, key, value, log_decay, beta):
        """States after each token [T, H, D, D] and outputs [T, H, D], from a zero state."""
        tokens, heads, width = query.shape
        states, output = np.zeros((tokens, heads, width, width)), np.zeros(query.shape)
        for head in range(heads):
            state = np.zeros((width, width))
            for t in range(tokens):
                state, output[t, head] = formulas.delta_step(state, query[t, head], key[t, head], value[t, head],
                                                             log_decay[t, head], beta[t, head])
                states[t, head] = state
        return states, output

    def _mla(self, base, x, record):
        """Section 6, direct form: keys and values of every head are made explicit."""
        settings = self.settings
        query = self._mla_query(base, x).reshape(len(x), settings.heads, settings.nope + settings.rope)
        compressed = self.apply(base + "kv_a_proj_with_mqa", x)
        latent = self.norm(base + "kv_a_layernorm", compressed[:, :settings.latent], self.latent_epsilon)
        shared_key = compressed[:, settings.latent:]
        record.update(latent=latent, shared_key=shared_key)
        head_shape = (len(x), settings.heads, settings.nope + settings.value)
        expanded = self.apply(base + "kv_b_proj", latent).reshape(head_shape)
        heads = [self._mla_head(query[:, i], expanded[:, i], shared_key) for i in range(settings.heads)]
        output = np.concatenate(heads, axis=1)
        if settings.mla_gate:
            output = output * formulas.sigmoid(self.apply(base + "g_proj", x))
        return self.apply(base + "o_proj", output)

    def _mla_query(self, base, x):
        if not self.settings.query_rank:
            return self.apply(base + "q_proj", x)
        reduced = self.norm(base + "q_a_layernorm", self.apply(base + "q_a_proj", x), self.latent_epsilon)
        return self.apply(base + "q_b_proj", reduced)

    def _mla_head(self, query, expanded, shared_key):
        """Causal attention of one head for all positions."""
        settings = self.settings
        keys = np.concatenate([expanded[:, :settings.nope], shared_key], axis=1)
        values = expanded[:, settings.nope:]
        scale = (settings.nope + settings.rope)**-0.5
        return np.stack([formulas.attend(query[t], keys[:t + 1], values[:t + 1], scale) for t in range(len(query))])

    # ---- feed forward, section 7

    def _feed_forward(self, layer, x, record):
        base = f"model.layers.{layer}."
        x = self.norm(base + "post_attention_layernorm", x)
        if not self.settings.is_moe(layer):
            return self._gated_mlp(base + "mlp.", x)
        return self._moe(base + "block_sparse_moe.", x, record)

    def _activate(self, gate, up):
        settings = self.settings
        if settings.activation == "silu":
            return formulas.swiglu(gate, up)
        return formulas.situ(gate, up, settings.situ_beta, settings.situ_linear_beta)

    def _gated_mlp(self, base, x):
        gate, up = self.apply(base + "gate_proj", x), self.apply(base + "up_proj", x)
        return self.apply(base + "down_proj", self._activate(gate, up))

    def _expert(self, base, x):
        return self.apply(base + "w2", self._activate(self.apply(base + "w1", x), self.apply(base + "w3", x)))

    def _moe(self, base, x, record):
        settings = self.settings
        inputs = self.apply(base + "routed_expert_down_proj", x) if settings.expert_latent else x
        logits, bias = self.apply(base + "gate", x), self.weight(base + "gate.e_score_correction_bias")
        routes = [formulas.route(logits[t], bias, settings) for t in range(len(x))]
        record.update(experts=[r[0] for r in routes], weights=[r[1] for r in routes], gaps=[r[2] for r in routes])
        output = np.stack([self._routed(base, inputs[t], *routes[t][:2]) for t in range(len(x))])
        if settings.expert_latent:
            output = self._leave_latent(base, output)
        return output + self._gated_mlp(base + "shared_experts.", x) if settings.shared_experts else output

    def _routed(self, base, x, experts, weights):
        """Weighted sum over the chosen experts of one token (step 7)."""
        return sum(w * self._expert(f"{base}experts.{e}.", x) for e, w in zip(experts, weights))

    def _leave_latent(self, base, output):
        """Step 8: norm after the weighted sum, then the way back to full width."""
        if self.settings.latent_norm:
            output = self.norm(base + "routed_expert_norm", output)
        return self.apply(base + "routed_expert_up_proj", output)


def greedy(model, ids, count):
    """Greedy continuation: ids, top-1 margins, and the smallest router gap over all runs."""
    sequence, chosen, margins, gap = list(ids), [], [], np.inf
    for _ in range(count):
        trace = model.run(sequence)
        order = np.argsort(-trace.logits[-1], kind="stable")
        chosen.append(int(order[0]))
        margins.append(float(trace.logits[-1][order[0]] - trace.logits[-1][order[1]]))
        gap = min(gap, trace.smallest_gap)
        sequence.append(chosen[-1])
    return chosen, margins, gap
