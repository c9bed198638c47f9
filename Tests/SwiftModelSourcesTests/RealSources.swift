import SystemPackage
import TestSupport

/// Declarations beside real stores.
enum RealSources {
  static var folder: FilePath? { RealMaterial.folder?.appending("swiftdata") }
  static var areAvailable: Bool { RealMaterial.isAvailable }
}
