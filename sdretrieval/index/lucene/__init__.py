"""The only folder that touches Java: finding and starting it, analysis, indexing, export, first-stage search."""
