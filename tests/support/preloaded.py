"""What every writer process imports: loaded once by the server that they are forked from.

Lance warns at a fork because its threads would not follow. That server never opens a dataset, so it has none.
"""

import warnings

import omnigraph.graph.graph  # noqa: F401 - the import is the purpose
import tests.models.dag.steps
import tests.models.histories.operations
import tests.support.protocol  # noqa: F401 - the import is the purpose

warnings.filterwarnings("ignore", message="lance is not fork-safe")
