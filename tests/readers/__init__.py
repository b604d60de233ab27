"""Other programs that read SARIF logs, run as their users run them: see README.md in this folder."""
