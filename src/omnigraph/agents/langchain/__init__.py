"""LangChain over a graph: a vector store, retrievers, a graph store, and chat history on a branch per thread.

Raises:
    UnsupportedError: langchain-core is not installed, which the extra `omnigraph[langchain]` does.
"""

from omnigraph.graph.extras import extra

extra("langchain_core", "langchain")  # before what imports it, so that the error says what to install

from omnigraph.agents.langchain.chat_history import OmnigraphChatHistory as OmnigraphChatHistory  # noqa: E402
from omnigraph.agents.langchain.graph_store import OmnigraphGraphStore as OmnigraphGraphStore  # noqa: E402
from omnigraph.agents.langchain.retrievers import OmnigraphQueryRetriever as OmnigraphQueryRetriever  # noqa: E402
from omnigraph.agents.langchain.retrievers import OmnigraphRetriever as OmnigraphRetriever  # noqa: E402
from omnigraph.agents.langchain.vector_store import OmnigraphVectorStore as OmnigraphVectorStore  # noqa: E402
from omnigraph.agents.texts import TextNames as TextNames  # noqa: E402
