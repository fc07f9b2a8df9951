"""Sizes of the demo model. Names of the configuration fields are in model_config.py."""
from dataclasses import dataclass


@dataclass(frozen=True)
class ModelSizes:
    """Widths in values. MLA layers are counted from 1, as in the configuration."""

    ranks: int = 4096
    vocabulary: int = 4352
    hidden: int = 192
    layers: int = 6
    mla_layers: tuple = (4, 6)
    residual_block: int = 3  # layers per block of the attention residuals
    epsilon: float = 1e-5

    kda_heads: int = 6
    kda_dim: int = 32
    decay_bound: float = -5.0

    mla_heads: int = 4
    query_rank: int = 96
    kv_rank: int = 64
    key_width: int = 32  # qk_nope_head_dim
    shared_key_width: int = 16  # qk_rope_head_dim, not rotated
    value_width: int = 32

    dense_width: int = 512
    experts: int = 32
    chosen_experts: int = 4
    shared_experts: int = 2
    expert_width: int = 96
    latent: int = 128

    @property
    def kda_channels(self):
        return self.kda_heads * self.kda_dim

    @property
    def mla_value_channels(self):
        return self.mla_heads * self.value_width

    @property
    def shared_width(self):
        return self.shared_experts * self.expert_width

    def is_mla(self, layer):
        """layer is 0-based."""
        return layer + 1 in self.mla_layers

    @property
    def mla_input_parts(self):
        """Rows of mla_in: query latent, kv latent, shared key, output gate."""
        return [self.query_rank, self.kv_rank, self.shared_key_width, self.mla_value_channels]


DEMO = ModelSizes()
