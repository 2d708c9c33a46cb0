"""`python -m keryx` is `keryx`."""

from keryx.cli.entry import main

main()
