import Compatibility
import StoreCoordination

/// How far the step of a migration is, by how much its new file has grown: SQLite works on whole tables at once, and tells nothing.
final class StepProgress: Sendable {
  /// The folder in which the steps' files grow, beside the file that is to be made.
  private let folder: FilePath

  /// The bytes of the store, about as many as each new file gets.
  private let total: Int64

  private let line = ProgressLine()
  private let step = Mutex("")

  /// - Parameters:
  ///   - store: the store that is migrated.
  ///   - output: where the result goes, if not to the store's place.
  init(of store: FilePath, to output: FilePath?) {
    let system = FileSystem()
    // Where the store cannot be found the migration says so, and nothing is shown.
    let place = (try? StoreFileSet.locate(output ?? store, in: system).main) ?? output ?? store
    folder = place.hiddenSibling(suffix: ".migrating")
    let members = try? StoreFileSet.locate(store, in: system).members(in: system)
    total = members?.reduce(0) { $0 + $1.status.size } ?? 0
  }

  /// Notes that a step begins.
  func begin(_ name: String, _ number: Int, of count: Int) {
    begin("Step \(number) of \(count): \(printable(name))")
  }

  /// Notes that work in a file of its own begins.
  func begin(_ words: String) {
    step.withLock { $0 = words }
    line.show(words, 0, of: max(total, 1))
  }

  /// Looks at how much was written; called now and then.
  func look() {
    let words = step.withLock { $0 }
    guard !words.isEmpty, total > 0 else { return }
    // Several steps may be done in the file of the first of them, and between two steps there is none.
    let system = FileSystem()
    guard let names = try? system.entries(of: folder),
      let name = names.first(where: { $0.string.hasSuffix(".sqlite.unfinished") }),
      let size = try? system.status(of: folder.appending(name))?.size
    else { return }
    // How much it will be is not known; it is at its end when the next step begins.
    line.show(words, min(size, total - total / 100), of: total, .bytes)
  }

  func clear() { line.clear() }
}
