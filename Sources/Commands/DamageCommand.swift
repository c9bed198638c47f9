import ArgumentParser
import LazaretTesting

struct DamageCommand: Verb {
  static let configuration = CommandConfiguration(
    verb: "damage", abstract: "Makes a damaged copy of a store, to rehearse what the app does then.",
    usage: """
      lazaret damage <store> --output <copy> --kind <kind> ... [--seed <seed>]
      lazaret damage --list
      """,
    discussion: """
      The store itself is only read. Its log, its journal and its large values in files of their own are copied with it; \
      those values are not damaged. The same store, kinds and seed give the same bytes.
      """, examples: "lazaret damage Stores/App.sqlite -o Broken.sqlite --kind zero:5 --seed 7")

  @Argument(help: "The store's main file.") var store: PathArgument?

  @Option(name: .output, help: .text("The copy's main file; nothing may be there.", "copy"))
  var out: PathArgument?

  @Option(help: "What is done to the copy; several are done one after the other.")
  var kind: [String] = []

  @Option(help: "What random choices are drawn from.") var seed: UInt64 = 1

  @Flag(help: "List the kinds and end.") var list = false

  @OptionGroup var output: OutputOptions

  func validate() throws {
    try out?.requirePlace()
    guard !list else { return }
    if store == nil { throw ValidationError("Name the store to copy, or say --list.") }
    if out == nil { throw ValidationError("Say with --output where the copy goes.") }
    if kind.isEmpty { throw ValidationError("Say with --kind what is done to it; --list tells the kinds.") }
  }

  func perform() throws {
    guard !list, let store, let out else {
      let kinds = DamageKind.Name.allCases.map { ["kind": $0.rawValue, "usage": $0.usage, "words": $0.words] }
      return try output.print(["kinds": kinds], Self.listing)
    }
    let kinds = try kind.flatMap { $0.split(separator: "+").map(String.init) }
      .map { text in try CommandLineSlip.telling { try Self.kind(text) } }
    let mark = PrivateFolder.mark(of: out.path)
    defer { withExtendedLifetime(mark) {} }
    let made = try DamagedCopy.make(of: store.path, at: out.path, kinds: kinds, seed: seed)
    try output.print(
      made,
      "\(printable(out.path.string)): \(kinds.map(\.description).joined(separator: ", ")), seed \(seed), "
        + "\(counted(Int64(made.placeCount), "place")) damaged\n")
  }

  /// Parses a kind; the error suggests the closest name.
  private static func kind(_ text: String) throws -> DamageKind {
    do throws(PersistentStoreError) {
      return try DamageKind(text)
    } catch {
      var told = error
      if told.kind == .unknownDamage {
        let name = text.split(separator: ":").first.map(String.init) ?? ""
        told.hint = Likeness.hint(told.hint, for: [name], among: DamageKind.Name.allCases.map(\.rawValue))
      }
      throw told
    }
  }

  private static var listing: String {
    var table = TextTable(["kind", "what is done"])
    for name in DamageKind.Name.allCases { table.append([name.usage, name.words]) }
    return table.text(indent: "")
  }
}
