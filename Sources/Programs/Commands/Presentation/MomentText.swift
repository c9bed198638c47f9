import StoreCoordination

/// A moment that a document has in RFC 3339, as it is shown: `2026-11-21 10:11 UTC`; any other text as it is.
func momentText(_ text: String) -> String {
  guard let moment = Timestamp(text)?.rfc3339 else { return printable(text) }
  return "\(moment.prefix(10)) \(moment.dropFirst(11).prefix(5)) UTC"
}
