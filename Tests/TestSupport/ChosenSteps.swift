/// The steps of a run before which a process is killed: some twelve of them, or each with LAZARET_LONG=1.
///
/// A process of its own for each takes long; deaths within the process, which take none, are tried before each.
package func chosenSteps(of steps: Int) -> [Int] {
  Array(stride(from: 1, through: steps, by: environment("LAZARET_LONG") != nil ? 1 : max(1, steps / 12)))
}
