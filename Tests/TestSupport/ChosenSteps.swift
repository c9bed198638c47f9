/// The steps of a run before which a process is killed: some twelve of them, or each with LAZARET_LONG=1.
///
/// A process of its own for each takes long; deaths within the process, which take none, are tried before each.
package func chosenSteps(of steps: Int) -> [Int] {
  Array(stride(from: 1, through: steps, by: environment("LAZARET_LONG") != nil ? 1 : max(1, steps / 12)))
}

/// The steps of a run at which one of several failures is injected: each step has one of them in turn, or all of them with
/// LAZARET_LONG=1.
///
/// - Parameters:
///   - number: which of the failures this is, from 0.
///   - failures: how many there are.
package func chosenSteps(of steps: Int, forFailure number: Int, of failures: Int) -> [Int] {
  let isLong = environment("LAZARET_LONG") != nil
  return isLong ? Array(1...steps) : Array(stride(from: 1 + number, through: steps, by: failures))
}
