import Platform

/// A moment that a document has in RFC 3339, as it is shown: `2026-11-21 10:11 UTC`, of the first moment of a month, which
/// may stand for any of it, the month: `2026-11`; any other text as it is.
func momentText(_ text: String) -> String {
  guard let time = Timestamp(text) else { return printable(text) }
  let moment = time.rfc3339
  if time.isBeginningOfMonth { return String(moment.prefix(7)) }
  return "\(moment.prefix(10)) \(moment.dropFirst(11).prefix(5)) UTC"
}
