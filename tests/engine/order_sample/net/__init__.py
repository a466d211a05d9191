from .layers import Block, Net
from .ops import clip, scale
from .registry import register
