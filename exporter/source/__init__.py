"""The user's source code: locations, syntax trees, the places of arguments, and calls that give a different answer each time."""
