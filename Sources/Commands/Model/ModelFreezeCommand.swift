import ArgumentParser
import ManagedObjectModel
import Migration
import Platform
import SwiftModelSources
import SystemPackage

struct ModelFreezeCommand: Verb {
  static let configuration = CommandConfiguration(
    verb: "freeze",
    abstract: "Writes a version of a model as a VersionedSchema in Swift, whose hashes are the version's.",
    usage: "lazaret model freeze <model> [--schema <name>] [--output <file>] [<options>]",
    discussion: """
      The classes are the schema's own, so that later changes of the app's classes do not reach them. The version is that \
      of a store, a backup or a bundle, by the model that it carries, one of a model, or one of a lock file that was written \
      from Swift sources. Enumerations and structures become structures with the \
      same elements. The text is read back before it is written: its hashes equal the version's.

      With --check the file is compared with the version, and nothing is written.
      """, examples: "lazaret model freeze App.store --schema SchemaV1 -o SchemaV1.swift",
    "lazaret model freeze App.store --schema SchemaV1 --check SchemaV1.swift",
    "lazaret model freeze model.lock --version-name SchemaV1 --schema SchemaV1",
    exitCodes: ExitStatus.codes(
      done: "done; with --check, the hashes are equal", doubtful: "with --check, hashes differ; the output says which",
      unavailable: "the model or the store is out of reach"))

  @Argument(help: "A store, backup or bundle that carries its model, a model of any kind, or a lock file.")
  var model: PathArgument

  @Option(help: .text("The version of a model; the current one if not given.", "name"))
  var versionName: String?

  @Option(help: .text("The name of the schema in Swift.", "name")) var schema = "FrozenSchema"

  @Option(name: .output, help: .text("The new file; standard output if not given.", "file"))
  var out: PathArgument?

  @Option(help: .text("The file with the schema that is to have the version's hashes.", "file"))
  var check: PathArgument?

  @OptionGroup var versionOrder: VersionOrderOptions
  @OptionGroup var output: OutputOptions

  func validate() throws {
    try out?.requirePlace()
    if out != nil, check != nil { throw ValidationError("Give --output or --check, not both.") }
  }

  func perform() throws {
    let version = try version()
    let wanted = version.model.versionHashes()
    if let check {
      let text = try FileSystem().contents(of: check.path, limit: 4 << 20)
      let found = try FrozenSchema.hashes(in: text, schema: schema)
      let other = Set(wanted.keys).union(found.keys).filter { wanted[$0] != found[$0] }.sorted()
      try show(version.name, wanted, file: check.path, differing: other, text: nil)
      guard other.isEmpty else { throw ExitStatus.doubtful }
      return
    }
    let frozen = try FrozenSchema(version.model, name: schema)
    if let out {
      try FileSystem().writeAtomically(
        Array(frozen.text.utf8), to: out.path, replacing: false, permissions: .init(rawValue: 0o644))
    }
    try show(version.name, wanted, file: out?.path, differing: [], text: out == nil ? frozen.text : nil)
  }

  /// - Parameters:
  ///   - file: the written or checked file; nil if the text is printed.
  ///   - differing: the entities with other hashes.
  private func show(
    _ version: String, _ hashes: [String: VersionHash], file: FilePath?, differing: [String], text: String?
  ) throws {
    let checksum = ManagedObjectModel.versionChecksum(of: hashes)
    if output.json {
      let payload: JSON.Object = [
        "schema": schema, "version": version, "checksum": checksum, "entities": hashes.mapValues(\.hex),
        "file": file.map { PathText($0) }, "differing": differing, "text": text,
      ]
      try Terminal.standardOutput.write(json: payload)
    } else if let text {
      Terminal.standardOutput.writeContent(text)
    } else {
      let subject = "\(printable(file?.string ?? "")): \(printable(schema))"
      Terminal.standardOutput.write(
        differing.isEmpty
          ? "\(subject) has the hashes of \(printable(version)), checksum \(checksum)\n"
          : "\(subject) differs from \(printable(version)) in \(differing.map { printable($0) }.joined(separator: ", "))\n"
      )
    }
  }

  /// From the store, the model or the lock file.
  private func version() throws -> ModelVersion {
    if let version = try lockedVersion() { return version }
    let bundle = try versionOrder.load(model.path, json: output.json)
    let version = try versionName.map { try bundle.readableVersion($0, at: model.path) } ?? bundle.current
    try requireUnedited(version)
    return version
  }

  /// Throws if the version was edited after locking: stores have the locked one.
  private func requireUnedited(_ version: ModelVersion) throws {
    guard let place = versionOrder.lock, let lock = try ModelLock.read(place.path), lock.versions[version.name] != nil,
      !lock.holds(version)
    else { return }
    throw MigrationError(
      .lockInvalid, operation: "freeze the version", path: place.path,
      detail: "version \"\(printable(version.name))\" was edited since it was locked",
      hint: "Freeze it from a store of that version, or from the lock file where that has its declarations.")
  }

  private func lockedVersion() throws -> ModelVersion? {
    let system = FileSystem()
    guard try system.status(of: model.path)?.kind == .regular,
      try system.open(model.path).bytes(at: 0, length: 1) == [UInt8(ascii: "{")],
      let lock = try ModelLock.read(model.path)
    else { return nil }
    let names = lock.order ?? lock.versions.keys.sorted()
    guard let name = versionName ?? names.last, let locked = lock.versions[name] else {
      throw ModelError(
        .versionOrder, path: model.path,
        detail:
          "the lock file has \(names.isEmpty ? "no version" : names.map { printable($0) }.joined(separator: ", "))")
    }
    guard let declaration = locked.declaration else {
      throw ModelError(
        .noVersions, operation: "freeze the version", path: model.path,
        detail: "the lock file has the hashes of \"\(printable(name))\" and not its declarations",
        hint: "Freeze it from a store of that version; model lint --write-lock keeps the declarations of Swift sources."
      )
    }
    let version = try FrozenSchema.version(in: Array(declaration.utf8), schema: Self.lockedSchema)
    guard version.versionHashes.mapValues(\.hex) == locked.entities else {
      throw MigrationError(
        .lockInvalid, operation: "freeze the version", path: model.path,
        detail: "the declarations of \"\(printable(name))\" have other hashes than the lock file says")
    }
    return ModelVersion(name: name, model: version.model, isCurrent: true)
  }

  static let lockedSchema = "LockedSchema"
}
