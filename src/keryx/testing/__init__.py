"""The public test kit: fixtures that find what was left over, tools that hang, contract suites."""
