"""The public test kit: fixtures that find left-overs, tools that hang, contract suites, a model."""
