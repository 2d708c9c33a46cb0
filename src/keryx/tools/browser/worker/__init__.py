"""The program that runs Chromium in a session's place. The host reads these files as text.

It knows nothing of the host but the pipes. It imports playwright and the standard library alone,
because the rest of Keryx may not be readable where it runs.
"""
