"""Where logs are kept. One contract, several stores."""
