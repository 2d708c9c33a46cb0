"""Who may talk to the server: tokens for programs, logins for people. It knows no framework."""
