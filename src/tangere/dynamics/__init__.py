"""What happens next: rigid parts that touch, slide and bounce, and never interpenetrate."""
