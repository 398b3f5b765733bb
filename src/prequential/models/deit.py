"""DeiT (Touvron et al. 2021), undistilled: a vision transformer with the names of timm's, whose weights load."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from prequential.errors import PreqError, require_count, require_number
from prequential.models.shapes import Shape, require_image, scaled

HEAD_SIZE = 64


def deit_s(input_shape: Shape, output_size: int, *, width: float = 1.0, stochastic_depth: float = 0.0) -> nn.Module:
    """DeiT-S: vision transformer of 12 blocks, 6 heads of 64; patches of 16×16 pixels, 4×4 in small images.

    Example:
        >>> with torch.device("meta"):
        ...     model = deit_s((3, 224, 224), 1000)
        >>> sum(p.numel() for p in model.parameters())
        22050664
    """
    return deit(input_shape, output_size, heads=6, depth=12, width=width, stochastic_depth=stochastic_depth)


def deit_tiny(input_shape: Shape, output_size: int, *, width: float = 1.0, stochastic_depth: float = 0.0) -> nn.Module:
    """A small DeiT for small images: 4 blocks (a third of DeiT-Ti), 3 heads of 64; patches of 4×4 pixels.

    Example:
        >>> sum(p.numel() for p in deit_tiny((3, 32, 32), 10).parameters())
        1803850
    """
    return deit(input_shape, output_size, heads=3, depth=4, width=width, stochastic_depth=stochastic_depth)


def deit(
    input_shape: Shape, output_size: int, *, heads: int, depth: int, width: float = 1.0, stochastic_depth: float = 0.0
) -> nn.Module:
    """A vision transformer with a class token and learned positions, on patches of a `patch_size_for` the image.

    Args:
        input_shape: an image (channels, height, width).
        output_size: the number of logits.
        heads: attention heads of 64 channels each.
        depth: the number of blocks.
        width: scales the number of heads.
        stochastic_depth: how often training leaves out the last block for an example; the first never,
            those between in proportion.
    """
    require_image("deit", input_shape, at_least=4)
    require_count("depth", depth)
    require_number("stochastic_depth", stochastic_depth, at_least=0, below=1)
    patch = patch_size_for(min(input_shape[1:]))
    for side in input_shape[1:]:
        if side % patch:
            raise PreqError(
                f"deit cuts this image into patches of {patch}×{patch}, got a side of {side} pixels; "
                f"crop or pad it to a multiple of {patch}"
            )
    num_patches = (input_shape[1] // patch) * (input_shape[2] // patch)
    rates = [stochastic_depth * number / max(depth - 1, 1) for number in range(depth)]
    return VisionTransformer(input_shape[0], output_size, patch, num_patches, scaled(heads, width), rates)


def patch_size_for(side: int) -> int:
    """4 pixels for images with a (shorter) side below 64, 8 below 128, 16 from there on.

    Example:
        >>> [patch_size_for(side) for side in (28, 32, 64, 96, 224)]
        [4, 4, 8, 8, 16]
    """
    return 4 if side < 64 else 8 if side < 128 else 16


class VisionTransformer(nn.Module):
    """Patches and a class token with positions, blocks, normalisation, dense layer on the class token."""

    def __init__(
        self, input_channels: int, output_size: int, patch: int, num_patches: int, heads: int, rates: list[float]
    ) -> None:
        super().__init__()
        size = heads * HEAD_SIZE
        self.cls_token = nn.Parameter(torch.empty(1, 1, size))
        self.pos_embed = nn.Parameter(torch.empty(1, num_patches + 1, size))
        self.patch_embed = Patches(input_channels, size, patch)
        self.blocks = nn.Sequential(*(Block(size, heads, rate) for rate in rates))
        self.norm = nn.LayerNorm(size, eps=1e-6)
        self.head = nn.Linear(size, output_size)
        nn.init.normal_(self.cls_token, std=1e-6)
        nn.init.trunc_normal_(self.pos_embed, std=0.02)
        for layer in self.modules():
            if isinstance(layer, nn.Linear):
                nn.init.trunc_normal_(layer.weight, std=0.02)
                nn.init.zeros_(layer.bias)

    def forward(self, inputs: Tensor) -> Tensor:
        patches = self.patch_embed(inputs)
        tokens = torch.cat([self.cls_token.expand(len(patches), -1, -1), patches], dim=1) + self.pos_embed
        logits: Tensor = self.head(self.norm(self.blocks(tokens)[:, 0]))
        return logits


class Patches(nn.Module):
    """Images as a sequence of patches, each a vector."""

    def __init__(self, input_channels: int, size: int, patch: int) -> None:
        super().__init__()
        self.proj = nn.Conv2d(input_channels, size, patch, stride=patch)

    def forward(self, inputs: Tensor) -> Tensor:
        patches: Tensor = self.proj(inputs)
        return patches.flatten(2).transpose(1, 2)


class Block(nn.Module):
    """Attention, then a perceptron, each normalised before and added after."""

    def __init__(self, size: int, heads: int, rate: float) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(size, eps=1e-6)
        self.attn = Attention(size, heads)
        self.norm2 = nn.LayerNorm(size, eps=1e-6)
        self.mlp = Perceptron(size)
        self.rate = rate

    def forward(self, tokens: Tensor) -> Tensor:
        tokens = tokens + self._sometimes(self.attn(self.norm1(tokens)))
        return tokens + self._sometimes(self.mlp(self.norm2(tokens)))

    def _sometimes(self, change: Tensor) -> Tensor:
        """In training, nothing for a share of `rate` of the examples, and more for the others to make up for it."""
        if not self.training or self.rate == 0:
            return change
        kept = torch.empty(len(change), 1, 1, dtype=change.dtype, device=change.device).bernoulli_(1 - self.rate)
        return change * (kept / (1 - self.rate))

    def extra_repr(self) -> str:
        return f"rate={self.rate:g}"


class Attention(nn.Module):
    """Each token takes from all, by as much as query and key agree."""

    def __init__(self, size: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(size, 3 * size)
        self.proj = nn.Linear(size, size)

    def forward(self, tokens: Tensor) -> Tensor:
        num_examples, num_tokens, size = tokens.shape
        split = self.qkv(tokens).view(num_examples, num_tokens, 3, self.heads, HEAD_SIZE)
        query, key, value = split.permute(2, 0, 3, 1, 4).unbind(0)
        taken = F.scaled_dot_product_attention(query, key, value)
        mixed: Tensor = self.proj(taken.transpose(1, 2).reshape(num_examples, num_tokens, size))
        return mixed


class Perceptron(nn.Module):
    """One hidden layer of four times the size, GELU."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.fc1 = nn.Linear(size, 4 * size)
        self.fc2 = nn.Linear(4 * size, size)

    def forward(self, tokens: Tensor) -> Tensor:
        changed: Tensor = self.fc2(F.gelu(self.fc1(tokens)))
        return changed
