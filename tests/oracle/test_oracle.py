"""Holds the oracle to every number printed in spec/kimi.md, to the last printed digit.

Run: python3 tests/oracle/test_oracle.py
"""

import collections
import copy
import json
import math
import os
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

import formulas
import generator
import kernel_vectors
import kimi
import make_vectors
import safetensors_folder
import spec_values
import tiny_tokenizer
from configurations import CONFIGS, EXPERT_FORMATS, PROMPT, PROMPTS
from settings import read_settings, text_config

LAST_DIGIT_SHARE = 0.5001  # half a unit of the last printed digit, and the rounding of this comparison


def last_digit(text, digits):
    """One unit in the last digit of a number that was printed with `digits` significant digits, zeros dropped."""
    mantissa, _, exponent = text.lower().partition("e")
    printed = 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2]))
    value = abs(float(text))
    return min(printed, 10.0 ** (math.floor(math.log10(value)) - digits + 1 if value else -digits))


class PrintedCase(unittest.TestCase):
    """Comparison with printed numbers; `compared` counts them."""

    compared = 0

    def assert_printed(self, printed, values, where="", digits=9):
        """The first values agree with the printed ones to half a unit of their last digit."""
        texts = printed.split()
        self.assertGreaterEqual(np.size(values), len(texts))
        for index, (text, value) in enumerate(zip(texts, np.ravel(values))):
            bound = LAST_DIGIT_SHARE * last_digit(text, digits)
            difference = abs(float(text) - float(value))
            self.assertLessEqual(difference, bound, f"{where}[{index}]: spec {text}, here {value!r}")
        PrintedCase.compared += len(texts)


class GeneratorTest(PrintedCase):
    """Sections 15.1 to 15.3."""

    @classmethod
    def setUpClass(cls):
        cls.tensors = {t.name: t for name in ("tiny_linear", "tiny_k3") for t in generator.all_tensors(CONFIGS[name])}

    def test_hash_and_first_values(self):
        for name, (hashed, printed) in spec_values.GENERATOR.items():
            if hashed is not None:
                self.assertEqual(generator.fnv1a(name), hashed)
                PrintedCase.compared += 1
            self.assert_printed(printed, generator.decoded_values(self.tensors[name]).reshape(-1), name)

    def test_counts_and_bytes(self):
        for name, (dtypes, data_bytes) in spec_values.COUNTS.items():
            tensors = generator.all_tensors(CONFIGS[name])
            self.assertEqual(collections.Counter(t.dtype for t in tensors), dtypes)
            self.assertEqual(sum(t.byte_count for t in tensors), data_bytes)
            self.assertEqual(len({t.name for t in tensors}), len(tensors))

    def test_a_log_of_k3_is_padded_with_zeros(self):
        values = generator.decoded_values(self.tensors["language_model.model.layers.0.self_attn.A_log"])
        self.assertEqual(values.shape, (16,))
        self.assertTrue(np.all(values[:6] != 0) and np.all(values[6:] == 0))

    def test_bf16_rounds_to_nearest_even(self):
        values = np.array([1.00390625, 1.01171875, 1.004, -1.00390625], dtype=np.float32)
        self.assertEqual([hex(b) for b in generator.bf16_bits(values)], ["0x3f80", "0x3f82", "0x3f81", "0xbf80"])


class CheckpointTest(unittest.TestCase):
    """Folders on disk hold what the generator says."""

    def write(self, name, **options):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        generator.write_checkpoint(CONFIGS[name], folder.name, expert_format=EXPERT_FORMATS.get(name), **options)
        return folder.name

    def shards(self, folder):
        return sorted(name for name in os.listdir(folder) if name.endswith(".safetensors"))

    def test_k3_has_a_file_per_layer_and_three_more(self):
        names = self.shards(self.write("tiny_k3"))
        self.assertEqual(len(names), 11)
        self.assertEqual(names[0], "model-00001-of-000011.safetensors")

    def test_linear_splits_a_layer_across_two_files(self):
        groups = generator.shard_groups(CONFIGS["tiny_linear"])
        layers = [{t.name.split(".")[2] for t in group if ".layers." in t.name} for group in groups]
        self.assertEqual(len(self.shards(self.write("tiny_linear"))), 2)
        self.assertTrue(layers[0] & layers[1])

    def test_reading_back_gives_the_generated_values(self):
        for name in CONFIGS:
            options = {"shuffle_seed": 3} if name == "tiny_k3" else {}
            stored = safetensors_folder.read(self.write(name, **options))
            tensors = generator.all_tensors(CONFIGS[name], EXPERT_FORMATS.get(name))
            self.assertEqual(set(stored), {t.name for t in tensors})
            for tensor in tensors:
                self.assertTrue(np.array_equal(stored[tensor.name], generator.decoded_values(tensor)), tensor.name)

    def test_shuffled_data_start_at_an_odd_offset(self):
        folder = self.write("tiny_linear", shuffle_seed=1)
        with open(os.path.join(folder, self.shards(folder)[0]), "rb") as file:
            self.assertEqual(int.from_bytes(file.read(8), "little") % 2, 1)

    def test_tokenizer_has_512_ranks_in_the_order_of_the_release(self):
        tokens = tiny_tokenizer.ranks(512)
        self.assertEqual(len(set(tokens)), 512)
        known = {b"!": 0, b'"': 1, b"a": 64, b"\n": 198, b" ": 220, b"he": 256, b" th": 271}
        self.assertEqual({token: tokens.index(token) for token in known}, known)
        self.assertEqual(tiny_tokenizer.specials(True, 512)[533], "<|media_pad|>")
        self.assertEqual(tiny_tokenizer.specials(False, 512)[522], "<|im_system|>")


class FormulaTest(PrintedCase):
    """Check values of sections 8, 9 and 11."""

    def test_situ(self):
        for line in spec_values.SITU.splitlines():
            gate, up, result = line.split()
            self.assert_printed(result, formulas.situ(float(gate), float(up), 4.0, 25.0), line)

    def test_decay(self):
        for line in spec_values.DECAY.splitlines():
            logit, a_log, unbounded, bounded = line.split()
            self.assert_printed(unbounded, formulas.decay(float(logit), float(a_log), None), line)
            self.assert_printed(bounded, formulas.decay(float(logit), float(a_log), -5.0), line)

    def test_rms(self):
        values = formulas.rms_norm(np.array([1, -2, 3, 0.5]), np.array([1, 2, 0.5, -1]), 1e-5)
        self.assert_printed(spec_values.RMS, values)

    def test_kda_steps(self):
        state = np.zeros((2, 2))
        for query, key, value, log_decay, beta, output, after in spec_values.KDA:
            query = formulas.l2_norm(np.array(query, float)) * 2**-0.5
            key = formulas.l2_norm(np.array(key, float))
            state, out = formulas.delta_step(state, query, key, np.array(value, float), np.array(log_decay), beta)
            self.assert_printed(output, out)
            self.assert_printed(after, state)

    def test_router(self):
        config = dict(CONFIGS["tiny_linear"], num_experts=6, num_experts_per_token=3)
        logits, bias = np.array([1, -0.5, 0.2, 2, 0.9, -1]), np.array([0, 0.3, 0.25, -0.4, 0, 0.5])
        chosen, weights, _ = formulas.route(logits, bias, read_settings(config))
        self.assertEqual(list(chosen), [2, 5, 0])
        self.assert_printed(spec_values.ROUTER_WEIGHTS, weights)

    def test_mixer(self):
        sources = [np.array([row], float) for row in ([1, 2, -2, 0.5], [0, 1, 0, -1], [3, -1, 2, 2])]
        norm, projection = np.array([1, 0.5, 2, 1]), np.array([0.3, -0.2, 0.1, 0.4])
        mixed, probability, scores = formulas.mix(sources, norm, projection, 1e-5)
        self.assert_printed(spec_values.MIX_SCORES, scores[0])
        self.assert_printed(spec_values.MIX_PROBABILITY, probability[0])
        self.assert_printed(spec_values.MIX, mixed[0])

    def test_mxfp4(self):
        packed = np.frombuffer(bytes.fromhex(spec_values.MXFP4_BYTES), np.uint8).reshape(1, 16)
        values = formulas.decode_mxfp4(packed, np.array([[126]], np.uint8))[0]
        expected = [float(text) for text in spec_values.MXFP4.split()]
        self.assertEqual(list(values), expected)
        self.assertEqual(list(np.signbit(values)), list(np.signbit(expected)))
        PrintedCase.compared += len(expected)


class OtherPathTest(unittest.TestCase):
    """Second forms that the spec gives for the same mathematics."""

    def test_chunked_kda_agrees_with_the_recurrence(self):
        random = np.random.default_rng(5)
        tokens, width = 9, 6
        query, key, value = (random.normal(size=(tokens, width)) for _ in range(3))
        log_decay, beta = -random.uniform(0, 5, size=(tokens, width)), random.uniform(size=tokens)
        first = random.normal(size=(width, width))
        state, outputs = first, []
        for t in range(tokens):
            state, out = formulas.delta_step(state, query[t], key[t], value[t], log_decay[t], beta[t])
            outputs.append(out)
        chunk_state, chunk_outputs = self.chunk(first, query, key, value, log_decay, beta)
        np.testing.assert_allclose(chunk_outputs, outputs, atol=1e-12)
        np.testing.assert_allclose(chunk_state, state, atol=1e-12)

    @staticmethod
    def chunk(first, query, key, value, log_decay, beta):
        """The chunked form at the end of section 5."""
        total, updates, outputs = np.cumsum(log_decay, axis=0), [], []
        for t in range(len(query)):
            reach = np.exp(total[t] - total[:t + 1])
            prediction = first.T @ (np.exp(total[t]) * key[t])
            prediction = prediction + sum((key[t] * key[j] * reach[j]).sum() * updates[j] for j in range(t))
            updates.append(beta[t] * (value[t] - prediction))
            seen = sum((query[t] * key[j] * reach[j]).sum() * updates[j] for j in range(t + 1))
            outputs.append(first.T @ (np.exp(total[t]) * query[t]) + seen)
        last = np.exp(total[-1])[:, None] * first
        last = last + sum(np.outer(np.exp(total[-1] - total[j]) * key[j], updates[j]) for j in range(len(query)))
        return last, outputs

    def test_absorbed_mla_agrees_with_the_direct_form(self):
        random = np.random.default_rng(6)
        nope, rope, value, latent, positions = 5, 3, 4, 7, 6
        key_rows, value_rows = random.normal(size=(nope, latent)), random.normal(size=(value, latent))
        latents, shared = random.normal(size=(positions, latent)), random.normal(size=(positions, rope))
        query, scale = random.normal(size=nope + rope), (nope + rope)**-0.5
        keys = np.concatenate([latents @ key_rows.T, shared], axis=1)
        direct = formulas.attend(query, keys, latents @ value_rows.T, scale)
        absorbed = np.concatenate([key_rows.T @ query[:nope], query[nope:]])
        cached = np.concatenate([latents, shared], axis=1)
        np.testing.assert_allclose(value_rows @ formulas.attend(absorbed, cached, latents, scale), direct, atol=1e-12)


class SwitchTest(unittest.TestCase):
    """Each varied key reaches the result: with another value the logits differ."""

    OTHER = {
        "groups": {"num_expert_group": 1}, "top_one": {"num_experts_per_token": 2},
        "no_renormalize": {"moe_renormalize": True}, "residual_block_one": {"attn_res_block_size": 2},
        "residual_block_large": {"attn_res_block_size": 2}, "latent_norm_off": {"routed_scaling_factor": 1.0},
        "no_mla_gate": {"topk_group": 1}, "no_shared_experts": {"routed_scaling_factor": 2.0},
        "softmax_router": {"moe_router_activation_func": "sigmoid"},
        "situ_no_linear_beta": {"activation_situ_beta": 4.0},
    }

    def logits(self, name, changes):
        config = copy.deepcopy(CONFIGS[name])
        text_config(config).update(changes)
        return kimi.Model(config).run(PROMPTS[name]).logits

    def test_another_value_gives_other_logits(self):
        for name, changes in self.OTHER.items():
            difference = np.max(np.abs(self.logits(name, {}) - self.logits(name, changes)))
            self.assertGreater(difference, 1e-3, name)

    def test_a_scale_of_the_routed_weights_vanishes_in_the_latent_norm(self):
        """Section 7 step 8; the epsilon of the norm is all that is left of it."""
        changed = self.logits("residual_block_one", {"routed_scaling_factor": 8.0})
        np.testing.assert_allclose(changed, self.logits("residual_block_one", {}), atol=1e-3)

    def test_moe_layers_follow_the_frequency_and_the_dense_count(self):
        expected = {"moe_frequency_two": [2, 4], "two_dense_layers": [2, 3], "tiny_linear": [1, 2, 3, 4, 5]}
        for name, layers in expected.items():
            settings = read_settings(CONFIGS[name])
            self.assertEqual([i for i in range(settings.layers) if settings.is_moe(i)], layers)


class VectorTest(unittest.TestCase):
    """The committed files are what the oracle computes today."""

    def committed(self, kind, name):
        with open(os.path.join(make_vectors.FOLDER, kind, name + ".json"), encoding="utf-8") as file:
            return json.load(file)

    def assert_close(self, committed, computed, where):
        """Equal structure; numbers to 1e-9, as another BLAS may sum in another order."""
        if isinstance(committed, dict):
            self.assertEqual(list(committed), list(computed), where)
            for key in committed:
                self.assert_close(committed[key], computed[key], f"{where}.{key}")
        elif isinstance(committed, list):
            self.assertEqual(len(committed), len(computed), where)
            for index, (a, b) in enumerate(zip(committed, computed)):
                self.assert_close(a, b, f"{where}[{index}]")
        elif isinstance(committed, float):
            self.assertTrue(math.isclose(committed, computed, rel_tol=1e-9, abs_tol=1e-9), where)
        else:
            self.assertEqual(committed, computed, where)

    def test_model_vectors_are_current(self):
        for name in CONFIGS:
            committed = self.committed("models", name)
            self.assertGreater(committed["smallest_router_gap"], 1e-4, name)
            self.assert_close(committed, make_vectors.rounded(make_vectors.model_vector(name)), name)

    def test_kernel_vectors_are_current(self):
        for name, table in kernel_vectors.tables().items():
            self.assert_close(self.committed("kernels", name), make_vectors.rounded(table), name)

    def test_kernel_inputs_are_exact_in_float32(self):
        outputs = {"y", "y_query", "o", "state", "state_norm", "scores", "p", "weights", "magnitude", "gap", "scale",
                   "epsilon"}
        for name, table in kernel_vectors.tables().items():
            for case in table["cases"]:
                for key, value in case.items():
                    if key not in outputs and isinstance(value, np.ndarray) and value.dtype == np.float64:
                        single = np.array(make_vectors.rounded(value), dtype=np.float32)
                        self.assertTrue(np.array_equal(single.astype(np.float64), value), f"{name}.{key}")


class GoldenCase:
    """Every number of 15.4 for one tiny model."""

    @classmethod
    def setUpClass(cls):
        cls.model = kimi.Model(CONFIGS[cls.name])
        cls.trace = cls.model.run(PROMPT)
        cls.greedy = kimi.greedy(cls.model, PROMPT, 8)

    def test_logits(self):
        for token, printed in self.spec["logits"].items():
            self.assert_printed(printed, self.trace.logits[token], f"logits {token}", 8)
        self.assert_printed(self.spec["norms"], np.linalg.norm(self.trace.logits, axis=1), "norm", 8)
        self.assertEqual(list(np.argmax(self.trace.logits, axis=1)), [int(i) for i in self.spec["argmax"].split()])
        PrintedCase.compared += len(PROMPT)

    def test_greedy_continuation(self):
        ids, margins, _ = self.greedy
        self.assertEqual(ids, [int(i) for i in self.spec["greedy"].split()])
        self.assert_printed(self.spec["margins"], margins, "margin", 1)
        PrintedCase.compared += len(ids)

    def test_smallest_router_gap(self):
        self.assert_printed(self.spec["gap"], min(self.trace.smallest_gap, self.greedy[2]), "gap", 1)

    def test_intermediate_values(self):
        for layer, record, index, printed in self.spec["trace"]:
            self.assert_printed(printed, self.trace.layers[layer][record][index], f"layer {layer} {record} {index}", 7)
        for token, printed in self.spec["state_norms"].items():
            self.assert_printed(printed, np.linalg.norm(self.trace.layers[0]["states"][token]), f"norm of S {token}", 7)

    def test_residual_after_each_layer(self):
        self.assertEqual(len(self.spec["residuals"]), len(self.trace.layers))
        for layer, (printed, norm) in enumerate(self.spec["residuals"]):
            self.assert_printed(printed, self.trace.layers[layer]["residual"][11], f"residual {layer}", 7)
            length = np.linalg.norm(self.trace.layers[layer]["residual"][11])
            self.assert_printed(norm, length, f"residual norm {layer}", 7)

    def test_experts_and_weights(self):
        for layer, printed in self.spec["experts"].items():
            pairs = dict(pair.split(": ") for pair in printed.split(", "))
            chosen = self.trace.layers[layer]["experts"][11]
            self.assertEqual({str(e) for e in chosen}, set(pairs), f"layer {layer}")
            for expert, weight in zip(chosen, self.trace.layers[layer]["weights"][11]):
                self.assert_printed(pairs[str(expert)], weight, f"layer {layer} expert {expert}", 6)
            PrintedCase.compared += len(pairs)

    def test_mixer_probabilities(self):
        self.assertEqual(len(self.spec["mixers"]), len(self.trace.mixers))
        for index, printed in enumerate(self.spec["mixers"]):
            self.assertEqual(len(printed.split()), self.trace.mixers[index].shape[1])
            self.assert_printed(printed, self.trace.mixers[index][11], f"mixer {index}", 7)

    def test_final_vector(self):
        self.assert_printed(self.spec.get("final", ""), self.trace.final[11], "final", 8)


class GoldenLinearTest(GoldenCase, PrintedCase):
    """15.4, tiny Kimi-Linear."""

    name, spec = "tiny_linear", spec_values.LINEAR


class GoldenK3Test(GoldenCase, PrintedCase):
    """15.4, tiny K3, text."""

    name, spec = "tiny_k3", spec_values.K3


def tearDownModule():
    """Says how much was compared, so that a silently skipped table is seen."""
    print(f"{PrintedCase.compared} printed numbers compared", file=sys.stderr)


if __name__ == "__main__":
    unittest.main()
