"""What every command prints and every pane shows, as text: a change of the code shows what it changes there."""
