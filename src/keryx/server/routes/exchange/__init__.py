"""The routes that turn sessions into files, and files into sessions."""
