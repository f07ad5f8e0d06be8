"""A byte-level GPT in plain PyTorch, small enough for two CPU cores. Imports torch."""

import torch
from torch import Tensor, nn
from torch.nn import functional

BYTES = 256


class Block(nn.Module):  # type: ignore[misc]
    """One pre-norm transformer layer: causal attention, then a feed-forward of four times width."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm_attention = nn.LayerNorm(width)
        self.query_key_value = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.norm_feed = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, hidden: Tensor) -> Tensor:
        """Return the layer's output; shape (sequences, bytes, width), as its input."""
        batch, length, width = hidden.shape
        split = self.query_key_value(self.norm_attention(hidden))
        split = split.view(batch, length, 3, self.heads, width // self.heads)
        query, key, value = split.permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        hidden = hidden + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        return hidden + self.down(functional.gelu(self.up(self.norm_feed(hidden))))


class GPT(nn.Module):  # type: ignore[misc]
    """Predicts the next byte of a text.

    Args:
        context: longest sequence, bytes.
        width: of the residual stream.
        layers: number of blocks.
        heads: attention heads per block.
    """

    def __init__(self, *, context: int, width: int, layers: int, heads: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(BYTES, width)
        self.place = nn.Embedding(context, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, BYTES, bias=False)
        self.apply(_initialise)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return the logits of each next byte: (sequences, bytes) to (sequences, bytes, 256)."""
        hidden = self.embed(tokens) + self.place(torch.arange(tokens.shape[1]))
        for block in self.blocks:
            hidden = block(hidden)
        return self.head(self.norm(hidden))


def _initialise(module: nn.Module) -> None:
    if isinstance(module, nn.Linear | nn.Embedding):
        nn.init.normal_(module.weight, std=0.02)
    if isinstance(module, nn.Linear) and module.bias is not None:
        nn.init.zeros_(module.bias)
