import Platform

/// Formats an RFC 3339 time as `2026-11-21 10:11 UTC`; the start of a month, which may stand for all of it, as
/// `2026-11`; other text unchanged.
func momentText(_ text: String) -> String {
  guard let time = Timestamp(text) else { return printable(text) }
  let moment = time.rfc3339
  if time.isBeginningOfMonth { return String(moment.prefix(7)) }
  return "\(moment.prefix(10)) \(moment.dropFirst(11).prefix(5)) UTC"
}
