internal import Migration
internal import Platform

/// Reads bytes as mappings from one version of a model to the next.
enum MappingReading {
  static func run(file bytes: [UInt8]) throws(FuzzFailure) {
    let bundle = try SeedModels.bundle()
    do {
      let file = try MappingFile(bytes: bytes)
      _ = try file.mappingModel(in: bundle)
      _ = try file.sealed(in: bundle)
    } catch {
      try expect(!MigrationError(any: error).detail.isEmpty, "an error without words")
    }
  }

  static func run(model bytes: [UInt8]) throws(FuzzFailure) {
    let bundle = try SeedModels.bundle()
    let folder = try FuzzFolder()
    let path = try folder.write(bytes, to: XMLTree.looksLikeXML(bytes) ? "xcmapping.xml" : "M.cdm")
    do {
      _ = try MappingModel.load(path: path, for: bundle)
    } catch {
      try expect(!MigrationError(any: error).detail.isEmpty, "an error without words")
    }
  }
}
