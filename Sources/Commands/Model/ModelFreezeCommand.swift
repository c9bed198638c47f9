import ArgumentParser
import Lazaret
import SwiftModelSources

/// `lazaret model freeze`: a version as a `VersionedSchema` in Swift.
struct ModelFreezeCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "freeze",
    abstract: "Writes a version of a model as a VersionedSchema in Swift, whose hashes are the version's.",
    usage: "lazaret model freeze <model> [--schema <name>] [--output <file>] [<options>]",
    discussion: """
      The classes are the schema's own, so that later changes of the app's classes do not reach them. The version is that \
      of a store, by the model that it carries, or one of a model. Enumerations and structures become structures with the \
      same elements. The text is read back before it is written: its hashes equal the version's.

      With --check the file is compared with the version, and nothing is written.

      EXAMPLE
        lazaret model freeze App.store --schema SchemaV1 --output SchemaV1.swift
        lazaret model freeze App.store --schema SchemaV1 --check SchemaV1.swift

      EXIT CODES
        0   done; with --check, the hashes are equal
        1   failed
        2   with --check, hashes differ; the output says which
        3   the model or the store is out of reach
        64  the command line was wrong
      """)

  @Argument(help: "A store that carries its model, or a model of any kind.")
  var model: PathArgument

  @Option(
    name: .customLong("version-name"),
    help: ArgumentHelp("The version of a model; the current one if not given.", valueName: "name"))
  var versionName: String?

  @Option(help: ArgumentHelp("The name of the schema in Swift.", valueName: "name"))
  var schema = "FrozenSchema"

  @Option(name: .shortAndLong, help: ArgumentHelp("The new file; standard output if not given.", valueName: "file"))
  var output: PathArgument?

  @Option(help: ArgumentHelp("The file with the schema that is to have the version's hashes.", valueName: "file"))
  var check: PathArgument?

  @OptionGroup var versionOrder: VersionOrderOptions
  @OptionGroup var presentation: OutputOptions

  func validate() throws {
    if output != nil, check != nil { throw ValidationError("Give --output or --check, not both.") }
  }

  func run() throws {
    try report(json: presentation.json) {
      let version = try version()
      let wanted = version.model.versionHashes()
      if let check {
        let text = try FileSystem().contents(of: check.path, limit: 4 << 20)
        let found = try FrozenSchema.hashes(in: text, schema: schema)
        let other = Set(wanted.keys).union(found.keys).filter { wanted[$0] != found[$0] }.sorted()
        try show(FreezeJSON(schema, version.name, wanted, file: check.path, differing: other), text: nil)
        guard other.isEmpty else { throw ExitStatus.doubtful }
        return
      }
      let frozen = try FrozenSchema(version.model, name: schema)
      if let output {
        try FileSystem().writeAtomically(
          Array(frozen.text.utf8), to: output.path, replacing: false, permissions: .init(rawValue: 0o644))
      }
      try show(
        FreezeJSON(schema, version.name, wanted, file: output?.path, differing: []),
        text: output == nil ? frozen.text : nil)
    }
  }

  private func show(_ result: FreezeJSON, text: String?) throws {
    if presentation.json {
      var result = result
      result.text = text
      Terminal.standardOutput.write(JSONText.pretty(result))
    } else if let text {
      Terminal.standardOutput.write(text)
    } else {
      let file = printable(result.file?.path?.string ?? "")
      Terminal.standardOutput.write(
        result.differing.isEmpty
          ? "\(file): \(printable(schema)) has the hashes of \(printable(result.version)), checksum \(result.checksum)\n"
          : "\(file): \(printable(schema)) differs from \(printable(result.version)) in \(result.differing.map { printable($0) }.joined(separator: ", "))\n"
      )
    }
  }

  /// The version that is frozen: the store's own, or one of the model.
  private func version() throws -> ModelVersion {
    if try isStore() {
      let examination = try Examiner().examine(model.path, model: nil, options: Examiner.Options(depth: .quick))
      guard let own = examination.storeModel else {
        throw ModelError(
          .noVersions, operation: "read the store's model", path: model.path,
          detail: "the store carries no model", hint: "Name the model that it was written with.")
      }
      return ModelVersion(name: model.path.stem ?? "Store", model: own, isCurrent: true)
    }
    let bundle = try versionOrder.load(model.path, unreadableVersions: .report, json: presentation.json)
    guard let versionName else { return bundle.current }
    if let version = bundle.version(named: versionName) { return version }
    if let unreadable = bundle.unreadableVersions.first(where: { $0.name == versionName }) { throw unreadable.error }
    throw ModelError(
      .versionOrder, path: model.path,
      detail:
        "it has no version \"\(printable(versionName))\"; it has \(bundle.versions.map { printable($0.name) }.joined(separator: ", "))"
    )
  }

  /// Whether the path is a database; a model is none.
  private func isStore() throws -> Bool {
    let system = FileSystem()
    guard let status = try system.status(of: model.path), status.kind == .regular else { return false }
    let ending = model.path.extension?.lowercased() ?? ""
    return !["mom", "omo", "swift", "sql", "xcdatamodel"].contains(ending)
      && model.path.lastComponent?.string != "contents"
  }
}

/// A frozen schema as `model freeze --json` prints it.
struct FreezeJSON: Encodable {
  var schema: String
  var version: String
  var checksum: String
  var entities: [String: String]

  /// The file that was written or checked; left out where the text is printed.
  var file: PathText?

  /// The entities whose hashes differ, with --check.
  var differing: [String]

  /// The declarations, where no file was named.
  var text: String?

  init(
    _ schema: String, _ version: String, _ hashes: [String: VersionHash], file: FilePath?, differing: [String]
  ) {
    self.schema = schema
    self.version = version
    checksum = ManagedObjectModel.versionChecksum(of: hashes)
    entities = hashes.mapValues(\.hex)
    self.file = file.map { PathText($0) }
    self.differing = differing
  }
}
