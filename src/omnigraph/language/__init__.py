"""Text to syntax trees and back; knows no graph."""
