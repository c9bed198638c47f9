/// Escapes control characters as `\u{…}`, for one line of a terminal.
public func printable(_ text: String) -> String {
  guard text.unicodeScalars.contains(where: isControl) else { return text }
  var result = ""
  for scalar in text.unicodeScalars {
    if isControl(scalar) {
      result += "\\u{\(String(scalar.value, radix: 16))}"
    } else {
      result.unicodeScalars.append(scalar)
    }
  }
  return result
}

private func isControl(_ scalar: Unicode.Scalar) -> Bool {
  switch scalar.properties.generalCategory {
  case .control, .format, .lineSeparator, .paragraphSeparator: true
  default: false
  }
}

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

/// Fills digits up with zeros at their start.
package func zeroPadded(_ digits: String, to width: Int) -> String {
  String(repeating: "0", count: max(0, width - digits.count)) + digits
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

package enum NameSuggestion {
  /// Returns the most similar name, if any; ignores case.
  static func nearest(to name: String, among names: some Sequence<String>) -> String? {
    let wanted = Array(name.lowercased().unicodeScalars.prefix(64))
    var best: (name: String, distance: Int)?
    for candidate in names {
      let distance = distance(wanted, Array(candidate.lowercased().unicodeScalars.prefix(64)))
      if best.map({ distance < $0.distance }) ?? true { best = (candidate, distance) }
    }
    guard let best, best.distance <= max(1, wanted.count / 3) else { return nil }
    return best.name
  }

  /// Returns `Did you mean "name"? ` and the allowed names, at most 40.
  package static func hint(for name: String, among names: [String], _ what: String) -> String {
    let sorted = names.sorted()
    let guess = nearest(to: name, among: sorted).map { "Did you mean \"\(printable($0))\"? " } ?? ""
    guard !sorted.isEmpty else { return guess + "There are no \(what)." }
    let shown = sorted.prefix(40).map(printable).joined(separator: ", ")
    return guess + "The \(what): \(shown)\(sorted.count > 40 ? " and \(sorted.count - 40) more" : "")."
  }

  private static func distance(_ first: [Unicode.Scalar], _ second: [Unicode.Scalar]) -> Int {
    var row = Array(0...second.count)
    for (index, scalar) in first.enumerated() {
      var diagonal = row[0]
      row[0] = index + 1
      for place in second.indices {
        let above = row[place + 1]
        row[place + 1] = min(above + 1, row[place] + 1, diagonal + (scalar == second[place] ? 0 : 1))
        diagonal = above
      }
    }
    return row[second.count]
  }
}
