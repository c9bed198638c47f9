/// Formats a number with thousands separators.
package func grouped(_ number: some BinaryInteger) -> String {
  let digits = String(number.magnitude)
  var result = ""
  for (place, digit) in digits.enumerated() {
    if place > 0, (digits.count - place).isMultiple(of: 3) { result.append(",") }
    result.append(digit)
  }
  return number < 0 ? "-" + result : result
}

/// Formats a number with its noun: `1 record`, `12,345 records`.
///
/// - Parameter plural: the noun with an `s` by default.
package func counted(_ count: some BinaryInteger, _ noun: String, _ plural: String? = nil) -> String {
  "\(grouped(count)) \(count == 1 ? noun : plural ?? noun + "s")"
}

/// Formats bytes in a decimal unit: `27.9 MB`.
package func readableSize(_ bytes: Int64) -> String {
  guard bytes >= 1000 else { return counted(bytes, "byte") }
  var value = Double(bytes) / 1000
  for unit in ["kB", "MB", "GB"] {
    if value < 999.95 { return "\((value * 10).rounded() / 10) \(unit)" }
    value /= 1000
  }
  return "\((value * 10).rounded() / 10) TB"
}
