import ArgumentParser

/// A span of time on the command line: a number and `s`, `m`, `h` or `d`.
struct TimeSpan: ExpressibleByArgument {
  var duration: Duration

  init?(argument: String) {
    guard let unit = argument.last, let number = Int64(argument.dropLast()), number > 0, number < 1_000_000 else {
      return nil
    }
    switch unit {
    case "s": duration = .seconds(number)
    case "m": duration = .seconds(number * 60)
    case "h": duration = .seconds(number * 3600)
    case "d": duration = .seconds(number * 86400)
    default: return nil
    }
  }
}
