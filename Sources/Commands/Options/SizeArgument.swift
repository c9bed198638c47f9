import ArgumentParser

/// A number of bytes on the command line: a whole number, with a unit or without.
struct SizeArgument: ExpressibleByArgument {
  var bytes: Int64

  private static let units: [(String, Int64)] = [
    ("kib", 1 << 10), ("mib", 1 << 20), ("gib", 1 << 30), ("tib", 1 << 40), ("kb", 1000), ("mb", 1_000_000),
    ("gb", 1_000_000_000), ("tb", 1_000_000_000_000),
  ]

  init?(argument: String) {
    let text = argument.lowercased()
    let unit = Self.units.first { text.hasSuffix($0.0) }
    let digits = unit.map { text.dropLast($0.0.count) } ?? text[...]
    guard !digits.isEmpty, digits.allSatisfy({ $0.isASCII && $0.isNumber }), let number = Int64(digits) else {
      return nil
    }
    let (product, isTooLarge) = number.multipliedReportingOverflow(by: unit?.1 ?? 1)
    guard !isTooLarge, product > 0 else { return nil }
    bytes = product
  }
}
