"""What a host does about money: prices, and the export of usage."""
