"""What is kept on disk: models, and the record of a fit that goes on."""
