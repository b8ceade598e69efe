"""What frameworks for agents need of a graph: documents found by meaning, knowledge, memory.

`agents.langchain` and `agents.llamaindex` have the classes of the two frameworks, and each imports its own.
The modules beside them are what both share, and know neither.

A1  A value that a program gives travels as a parameter of a query, or as a record; never in a query's text.
A2  A name enters a text of ours after the catalog has it, or after it was made of letters, digits and '_'.
A3  A schema only grows: a type or a property that is there is used as it is, or refused.
A4  A query that is given as a text is one, and never the name of a file: a model may have written it.
"""
