"""Read and change the settings of servers, as transactions with rollback; undo changes byte for byte."""
