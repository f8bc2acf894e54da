"""The whole way from data to a network, in one verb; and how sure its edges are."""

from .confidence import Confidence, bootstrap
from .learn import learn, learn_with
from .learned import Learned
from .outputs import Outputs
from .settings import LearnSettings

__all__ = ["Confidence", "LearnSettings", "Learned", "Outputs", "bootstrap", "learn", "learn_with"]
