"""The whole way from data to a network, in one verb; and how sure its edges are."""

from .confidence import Confidence, bootstrap
from .learn import learn
from .learned import Learned
from .recipe import Recipe

__all__ = ["Confidence", "Learned", "Recipe", "bootstrap", "learn"]
