"""Random problems and damaged files, for as many minutes as one likes: ``make fuzz MINUTES=10``.

Not part of the suite, but for a smoke test. Every case runs in a process of its own with limits of
memory and time (``child``). Files: ``seeds`` makes whole ones of every kind, ``mutations`` damages
them, ``reading`` says what must become of them. Fits: ``problems`` draws them and asks the oracle.
``suite`` runs the properties of the test suite with new seeds. ``record`` counts, keeps what went
wrong, and writes the page.
"""
