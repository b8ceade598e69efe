"""Text to syntax trees and back; knows nothing of graphs."""
