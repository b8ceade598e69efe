"""Texts to vectors: providers behind one protocol, chosen by a configuration."""

from omnigraph.embedding.config import EmbeddingConfig
from omnigraph.embedding.embedder import Embedder
from omnigraph.embedding.provider import Provider, Role

__all__ = ["Embedder", "EmbeddingConfig", "Provider", "Role"]
