/// A reader of bytes of any origin, as a fuzzer calls it: any bytes must be read or refused.
package enum FuzzTarget: String, CaseIterable, Sendable {
  /// One page of a database: header, cells, free space, freelist trunk, pointer map.
  case page

  /// A record: header, serial types, values, text in all encodings.
  case record

  /// Statements of a schema.
  case schema

  /// A whole database with its log or journal: every function there is.
  case database

  /// A write-ahead log, as it is and with its checksums put right.
  case log

  /// A rollback journal, as it is and with its checksums put right.
  case journal

  /// A property list, binary or XML; what is read can be written and is read again.
  case propertyList = "property-list"

  /// A keyed archive, and the predicates and expressions in it.
  case archive

  /// A tree of XML.
  case xml

  /// A predicate or expression in Core Data's format.
  case predicate

  /// The source of a model: the XML of `contents`.
  case modelSource = "model-source"

  /// A compiled model, as an archive and as a packed model cache.
  case compiledModel = "compiled-model"

  /// A compiled model of which parts are exchanged: the bytes say which.
  case modelArchive = "model-archive"

  /// A model as the editor archives it.
  case editorModel = "editor-model"

  /// One of Core Data's mapping models, source or compiled.
  case mappingModel = "mapping-model"

  /// A mapping file.
  case mappingFile = "mapping-file"

  /// The metadata of a store.
  case metadata

  /// The receipt of a quarantined store.
  case receipt

  /// A recovery kit, as it is and packed with the right sum.
  case recoveryKit = "recovery-kit"

  /// The address, the fields and the form of a request.
  case request

  /// A tar archive, in one piece and in many.
  case tar

  /// The archive of a bundle: packed, unpacked and checked; also with its sums put right.
  case bag

  /// An encrypted file, armoured or not.
  case age

  /// The header of an encrypted file.
  case ageHeader = "age-header"

  /// The content of an encrypted file: sealed, altered, opened.
  case agePayload = "age-payload"

  /// The armour of an encrypted file.
  case ageArmor = "age-armor"

  /// What a sender and a receiver of bundles say to each other.
  case upload

  /// Examining a store.
  case examination

  /// Salvaging a store of which nothing is known, deleted rows too.
  case salvage

  /// Salvaging a store with its model into a clean one.
  case rebuild

  /// Replacing all values of a store.
  case scrub
}

extension FuzzTarget {
  /// Reads the bytes, in every way that the target has.
  ///
  /// - Throws: ``FuzzFailure`` where what was read contradicts itself. That the bytes are refused is no failure.
  package func run(_ bytes: [UInt8]) throws(FuzzFailure) {
    switch self {
    case .page: try PageReading.run(bytes)
    case .record: try RecordReading.run(bytes)
    case .schema: SchemaReading.run(bytes)
    case .database: try DatabaseReading.run(bytes)
    case .log: try LogReading.run(log: bytes)
    case .journal: try LogReading.run(journal: bytes)
    case .propertyList: try ListReading.run(list: bytes)
    case .archive: ListReading.run(archive: bytes)
    case .xml: try ListReading.run(xml: bytes)
    case .predicate: ListReading.run(predicate: bytes)
    case .modelSource: try ModelReading.run(source: bytes)
    case .compiledModel: try ModelReading.run(compiled: bytes)
    case .modelArchive: try ModelReading.run(edits: bytes)
    case .editorModel: ModelReading.run(editor: bytes)
    case .mappingModel: try MappingReading.run(model: bytes)
    case .mappingFile: try MappingReading.run(file: bytes)
    case .metadata: try StoreReading.run(metadata: bytes)
    case .receipt: try StoreReading.run(receipt: bytes)
    case .recoveryKit: try StoreReading.run(recoveryKit: bytes)
    case .request: try RequestReading.run(bytes)
    case .tar: try ArchiveReading.run(tar: bytes)
    case .bag: try ArchiveReading.run(bag: bytes)
    case .age, .ageArmor: try AgeReading.run(file: bytes)
    case .ageHeader: try AgeReading.run(header: bytes)
    case .agePayload: try AgeReading.run(content: bytes)
    case .upload: try UploadReading.run(bytes)
    case .examination: try StoreReading.run(examination: bytes)
    case .salvage: try StoreReading.run(salvage: bytes)
    case .rebuild: try StoreReading.run(rebuild: bytes)
    case .scrub: try StoreReading.run(scrub: bytes)
    }
  }

  /// The longest input that is worth trying, in bytes.
  package var maximumLength: Int {
    switch self {
    case .page: 4096
    case .record, .predicate: 1024
    case .schema, .metadata, .mappingFile, .receipt, .recoveryKit, .request, .xml, .modelArchive,
      .age, .ageHeader, .ageArmor, .upload:
      8192
    case .log, .journal, .database, .propertyList, .archive, .tar, .bag: 32_768
    case .agePayload: 200_000
    case .examination, .salvage, .rebuild, .scrub, .modelSource, .compiledModel, .editorModel, .mappingModel: 65_536
    }
  }
}
