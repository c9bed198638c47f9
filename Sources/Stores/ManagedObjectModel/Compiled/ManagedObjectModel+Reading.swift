internal import PropertyLists
public import StoreFiles

extension ManagedObjectModel {
  /// Reads the source of a model: the XML of `.xcdatamodel/contents`.
  ///
  /// - Throws: `ModelError` where it is no model source, or the model contradicts itself.
  public init(source bytes: [UInt8]) throws(ModelError) { self = try ModelSourceReader.read(bytes) }

  /// Reads a compiled model: the keyed archive of a `.mom`, or of an unpacked model cache.
  ///
  /// - Throws: `ModelError` where it is no compiled model, is damaged, or the model contradicts itself.
  public init(compiled bytes: [UInt8]) throws(ModelError) {
    if bytes.starts(with: Array("momv2$".utf8)) {
      throw ModelError(
        .optimizedFormat, detail: "it is the optimized form of a compiled model (momv2$), which is not read")
    }
    self = try CompiledModelReader.read(bytes)
  }

  /// Reads the model cache of a store: the content of `Z_MODELCACHE`, raw DEFLATE of a compiled model (section 3.4).
  ///
  /// - Throws: `ModelError` where it cannot be unpacked, unpacks to more than is plausible, or holds no model.
  public init(modelCache bytes: [UInt8]) throws(ModelError) {
    let archive = try Self.unpacked(modelCache: bytes)
    do {
      self = try ManagedObjectModel(compiled: archive)
    } catch {
      var error = error
      error.operation = "read the model cache"
      error.hint = "Name the model that the store was written with."
      throw error
    }
  }

  /// Whether a model cache unpacks to a keyed archive, of whatever version.
  package static func isArchive(modelCache bytes: [UInt8]) -> Bool {
    guard let archive = try? unpacked(modelCache: bytes) else { return false }
    return (try? KeyedArchive(archive)) != nil
  }

  /// The keyed archive inside of a model cache.
  package static func unpacked(modelCache bytes: [UInt8]) throws(ModelError) -> [UInt8] {
    // Real caches unpack to five to twenty times their size; DEFLATE could give a thousand.
    let limit = min(64 << 20, (64 << 10) + 200 * min(bytes.count, 1 << 20))
    guard let archive = RawDeflate.unpack(bytes, limit: limit) else {
      throw ModelError(
        .damaged, operation: "read the model cache", detail: "it cannot be unpacked",
        hint: "Name the model that the store was written with.")
    }
    return archive
  }

  /// The model as stores cache it in `Z_MODELCACHE`: raw DEFLATE of a keyed archive.
  ///
  /// Default values and rules of kinds that are not read are left out; nothing of them enters the version hashes.
  ///
  /// - Throws: `ModelError` where the model contradicts itself or is too large for an archive.
  public func modelCache() throws(ModelError) -> [UInt8] {
    guard let packed = RawDeflate.pack(try compiledBytes()) else {
      throw ModelError(.unwritable, operation: "write the model cache", detail: "it could not be packed")
    }
    return packed
  }

  /// The model as a keyed archive in the form that Core Data caches it in a store.
  package func compiledBytes() throws(ModelError) -> [UInt8] { try CompiledModelWriter.bytes(of: self) }
}
