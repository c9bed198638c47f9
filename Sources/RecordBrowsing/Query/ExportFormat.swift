/// The form in which records are handed out to other programs.
public enum ExportFormat: String, Sendable, Hashable, CaseIterable {
  /// Comma-separated values (RFC 4180): a line of names, then a line for each record.
  case csv

  /// A JSON array with an object for each record.
  case json

  /// A JSON object on each line.
  case jsonLines = "jsonl"
}
